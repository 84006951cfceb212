"""The few messages of etcd's v3 protocol that the store needs, as a table."""

from __future__ import annotations

from typing import Any, NamedTuple

from karmada.kube.client.protobuf_messages import compile_messages

_PACKAGE = "karmada.etcd"
_TABLE = {
    "ResponseHeader": "uint64 cluster_id 1, uint64 member_id 2, int64 revision 3, uint64 raft_term 4",
    "KeyValue": "bytes key 1, int64 create_revision 2, int64 mod_revision 3, int64 version 4, bytes value 5",
    "Event": "int32 type 1, KeyValue kv 2, KeyValue prev_kv 3",
    "RangeRequest": (
        "bytes key 1, bytes range_end 2, int64 limit 3, int64 revision 4, bool serializable 7, bool keys_only 8, "
        "bool count_only 9"
    ),
    "RangeResponse": "ResponseHeader header 1, KeyValue* kvs 2, bool more 3, int64 count 4",
    "PutRequest": "bytes key 1, bytes value 2",
    "PutResponse": "ResponseHeader header 1",
    "DeleteRangeRequest": "bytes key 1, bytes range_end 2",
    "DeleteRangeResponse": "ResponseHeader header 1, int64 deleted 2",
    "Compare": "int32 result 1, int32 target 2, bytes key 3, int64 mod_revision 6",
    "RequestOp": "RangeRequest range 1, PutRequest put 2, DeleteRangeRequest delete 3",
    "ResponseOp": "RangeResponse range 1, PutResponse put 2, DeleteRangeResponse delete 3",
    "TxnRequest": "Compare* compare 1, RequestOp* success 2, RequestOp* failure 3",
    "TxnResponse": "ResponseHeader header 1, bool succeeded 2, ResponseOp* responses 3",
    "CompactionRequest": "int64 revision 1, bool physical 2",
    "CompactionResponse": "ResponseHeader header 1",
    "WatchCreateRequest": (
        "bytes key 1, bytes range_end 2, int64 start_revision 3, bool progress_notify 4, bool prev_kv 6"
    ),
    "WatchProgressRequest": "",
    "WatchRequest": "WatchCreateRequest create 1, WatchProgressRequest progress 3",
    "WatchResponse": (
        "ResponseHeader header 1, int64 watch_id 2, bool created 3, bool canceled 4, int64 compact_revision 5, "
        "string cancel_reason 6, bool fragment 7, Event* events 11"
    ),
    "StatusRequest": "",
    "StatusResponse": "ResponseHeader header 1, string version 2, int64 db_size 3, uint64 leader 4, string* errors 8",
}

EQUAL = 0
"""Compare.result"""
MOD = 2
"""Compare.target: the revision of the key's last write"""
DELETE = 1
"""Event.type; 0 is a put"""


_classes = compile_messages(_PACKAGE, _TABLE)
RangeRequest: Any = _classes["RangeRequest"]
PutRequest: Any = _classes["PutRequest"]
DeleteRangeRequest: Any = _classes["DeleteRangeRequest"]
Compare: Any = _classes["Compare"]
RequestOp: Any = _classes["RequestOp"]
TxnRequest: Any = _classes["TxnRequest"]
CompactionRequest: Any = _classes["CompactionRequest"]
WatchCreateRequest: Any = _classes["WatchCreateRequest"]
WatchProgressRequest: Any = _classes["WatchProgressRequest"]
WatchRequest: Any = _classes["WatchRequest"]
WatchResponse: Any = _classes["WatchResponse"]
StatusRequest: Any = _classes["StatusRequest"]
StatusResponse: Any = _classes["StatusResponse"]


class Method(NamedTuple):
    """A remote procedure: its path, and the message that comes back."""

    path: str
    answer: Any


RANGE = Method("/etcdserverpb.KV/Range", _classes["RangeResponse"])
PUT = Method("/etcdserverpb.KV/Put", _classes["PutResponse"])
TXN = Method("/etcdserverpb.KV/Txn", _classes["TxnResponse"])
COMPACT = Method("/etcdserverpb.KV/Compact", _classes["CompactionResponse"])
WATCH = Method("/etcdserverpb.Watch/Watch", WatchResponse)
STATUS = Method("/etcdserverpb.Maintenance/Status", StatusResponse)
