import orjson
INVALID_REQUEST=-32600; UNSUPPORTED_VERSION=-32022
def error(id,code,message,data=None): return b'{"jsonrpc":"2.0","id":'+id+b',"error":'+orjson.dumps({"code":code,"message":message,"data":data})+b'}'
def result(id,r): return b'{"jsonrpc":"2.0","id":'+id+b',"result":'+r+b'}'
def unwrap(b):
    for l in b.splitlines():
        if l.startswith(b"data:"): return l[5:].strip()
def with_id(m,id): return m
