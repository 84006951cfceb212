"""The group that everyone who is somebody has."""

from __future__ import annotations

from karmada.kube.server.auth.user import ANONYMOUS, AUTHENTICATED, UNAUTHENTICATED, User


def authenticated(user: User) -> User:
    """Return the user as a member of system:authenticated."""
    if user.name == ANONYMOUS or AUTHENTICATED in user.groups or UNAUTHENTICATED in user.groups:
        return user
    return User(user.name, user.uid, (*user.groups, AUTHENTICATED), user.extra)
