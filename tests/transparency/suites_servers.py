"""Servers with their clients: redis, nginx and PostgreSQL, through start, load, reload, crash and end."""

from suite import FromPackages, Suite, UNTIL, steps

ACCOUNT = "assure-test"

SERVERS = FromPackages("servers", "redis-server", "redis-tools", "nginx", "nginx-common", "wrk", "libjemalloc2", "liblzf1",
                       "libluajit-5.1-2", "libatomic1")
POSTGRES = FromPackages("postgres", "postgresql-15", "postgresql-client-15", "libpq5")


def environment(cache):
    root = SERVERS.folder(cache)
    return {"PATH": f"{root}/usr/bin:{root}/usr/sbin:/usr/bin:/bin:/usr/sbin",
            "LD_LIBRARY_PATH": f"{root}/usr/lib/x86_64-linux-gnu", "NGINX_TYPES": f"{root}/etc/nginx/mime.types"}


REDIS = UNTIL + """
cat >redis.conf <<CONF
port 16379
bind 127.0.0.1
unixsocket $PWD/socket
daemonize yes
pidfile $PWD/pid
logfile $PWD/log
dir $PWD
appendonly yes
save 3600 1
CONF
cli() { redis-cli -p 16379 "$@"; }
"""


def tests_of_redis(cache):
    yield steps("redis/benchmark", {
        "starts": "redis-server redis.conf && until_ 'cli ping'; cli ping",
        "tcp": "redis-benchmark -p 16379 -q --csv -n 3000 -c 20 -t set,get,incr,lpush,rpush,lpop,sadd,hset,spop,zadd,mset "
               "| cut -d, -f1",
        "unix": "redis-benchmark -s $PWD/socket -q --csv -n 3000 -c 20 -P 16 -t set,get | cut -d, -f1",
        "threads": "redis-benchmark -p 16379 -q --csv -n 3000 -c 20 --threads 2 -t set,get | cut -d, -f1",
        "saves": "cli bgsave; until_ '[ \"$(cli info persistence | tr -d \"\\r\" | grep ^rdb_bgsave_in)\" = rdb_bgsave_in_progress:0 ]'; "
                 "cli info persistence | grep rdb_last_bgsave_status; ls dump.rdb",
        "rewrites": "cli bgrewriteaof; sleep 1; until_ '[ \"$(cli info persistence | tr -d \"\\r\" | grep ^aof_rewrite_in)\" = "
                    "aof_rewrite_in_progress:0 ]'; cli info persistence | grep aof_last_bgrewrite_status",
        "keeps": "cli set word held; cli save; cli config set appendfsync always; cli set other kept",
        "is killed": "kill -9 $(cat pid); until_ '! cli ping'; rm -f socket; echo gone",
        "recovers": "redis-server redis.conf && until_ 'cli ping'; until_ 'cli get word | grep held'; cli get word; cli get other",
        "checks": "redis-check-rdb dump.rdb | tail -1",
        "ends": "cli shutdown save; until_ '[ ! -e pid ]'; ls socket pid",
    }, before=REDIS, environment=environment(cache))


NGINX = UNTIL + """
[ "$(id -u)" = 0 ] && user='user nobody nogroup;'
mkdir root temp
chmod 777 root temp
cat >conf <<CONF
$user
worker_processes 2;
pid $PWD/pid;
error_log $PWD/error.log notice;
events { worker_connections 128; }
http {
	include $NGINX_TYPES;
	sendfile on;
	access_log $PWD/access.log;
	client_body_temp_path $PWD/temp/body;
	proxy_temp_path $PWD/temp/proxy;
	fastcgi_temp_path $PWD/temp/fastcgi;
	uwsgi_temp_path $PWD/temp/uwsgi;
	scgi_temp_path $PWD/temp/scgi;
	proxy_cache_path $PWD/temp/cache keys_zone=one:1m;
	client_max_body_size 64m;
	server {
		listen 127.0.0.1:18080;
		listen unix:$PWD/socket;
		root $PWD/root;
		location / { dav_methods PUT DELETE MKCOL COPY MOVE; create_full_put_path on; }
		location /through/ { proxy_pass http://127.0.0.1:18080/; proxy_cache one; proxy_cache_valid 1m; }
	}
}
CONF
# By its whole name, which it needs to start itself again.
server() { "$(command -v nginx)" -p "$PWD" -c "$PWD/conf" -e "$PWD/error.log" "$@"; }
get() { curl -sS -m 20 "$@"; }
at=http://127.0.0.1:18080
echo hello >root/hello.txt
seq 1 700000 >root/large.txt
"""


def tests_of_nginx(cache):
    yield steps("nginx/serving", {
        "tests": "server -t",
        "starts": "server && until_ 'get $at/hello.txt'; get $at/hello.txt",
        "missing": "get -o /dev/null -w '%{response_code}' $at/none | grep -x 404 | tr 0-9 a-z",
        "range": "get -r 1-3 $at/hello.txt",
        "unix": "get --unix-socket socket http://x/hello.txt",
        "large": "get $at/large.txt | cmp - root/large.txt && echo equal",
        "puts": "get -T root/large.txt $at/new/copy.txt && cmp root/large.txt root/new/copy.txt && stat -c '%U %A' root/new/copy.txt",
        "moves": "get -X MOVE -H \"Destination: $at/new/moved.txt\" $at/new/copy.txt; ls root/new",
        "deletes": "get -X DELETE $at/new/moved.txt; ls root/new | wc -l; ls root/new",
        "proxies": "get $at/through/hello.txt; get $at/through/large.txt | cmp - root/large.txt && echo equal; "
                   "find temp/cache -type f | wc -l",
        "many": "wrk -t 2 -c 20 -d 2 $at/hello.txt >wrk.out; grep -E 'Socket errors|Non-2xx' wrk.out; grep -c Requests/sec wrk.out",
        "rotates": "mv access.log old.log; kill -USR1 $(cat pid); until_ '[ -e access.log ]'; get $at/hello.txt; "
                   "until_ '[ -s access.log ]' && echo written",
        "reloads": "kill -HUP $(cat pid); sleep 1; get $at/hello.txt; grep -c 'gracefully shutting down' error.log",
        "replaces itself": "kill -USR2 $(cat pid); until_ '[ -e pid.oldbin ]'; kill -QUIT $(cat pid.oldbin); "
                           "until_ '[ ! -e pid.oldbin ]'; get $at/hello.txt",
        "ends": "kill -QUIT $(cat pid); until_ '[ ! -e pid ]'; get $at/hello.txt",
        "said": "grep -oE '\\[(warn|error|crit|alert|emerg)\\].*' error.log | sort | uniq",
    }, before=NGINX, environment=environment(cache))


CLUSTER = """
export PGHOST=$PWD PGUSER=me PGDATABASE=postgres
server() { pg_ctl -D data -w -t 60 -l log -o "-k $PWD -c listen_addresses= -c fsync=off -c jit=off -c max_wal_size=64MB" "$@"; }
"""


def tests_of_postgres(cache):
    root = POSTGRES.folder(cache)
    yield steps("postgres/pgbench", {
        "initdb": "initdb -D data -A trust -U me",
        "starts": "server start >/dev/null && echo started",
        "fills": "pgbench -i -s 2 2>&1 | grep -v ' of '",
        "writes": "pgbench -c 4 -j 2 -t 250 2>/dev/null | grep -E 'failed|actually'",
        "history": "[ $(psql -Atc 'select count(*) from pgbench_history') = 1000 ] && echo all",
        "reads": "pgbench -S -c 4 -j 2 -t 500 2>/dev/null | grep -E 'failed|actually'",
        "prepared": "pgbench -M prepared -c 2 -t 100 2>/dev/null | grep -E 'failed|actually'",
        "parallel": "psql -Atc 'set max_parallel_workers_per_gather = 2; set min_parallel_table_scan_size = 0; "
                    "select count(*) = 200000 from pgbench_accounts'",
        "copies": "psql -Atc \"copy pgbench_branches to '$PWD/branches'\"; psql -Atc \"copy pgbench_tellers to program "
                  "'cat >$PWD/tellers'\"; cat branches | wc -l; ls tellers",
        "tablespace": "mkdir space && psql -Atc \"create tablespace there location '$PWD/space'\" && psql -Atc "
                      "'create table t tablespace there as select generate_series(1, 1000) as n' && ls space | wc -l",
        "vacuums": "vacuumdb -q -z && echo vacuumed",
        "dumps": "pg_dump -Fd -j 2 -f dump && createdb copy && pg_restore -d copy dump && psql -d copy -Atc "
                 "'select count(*) = 200000 from pgbench_accounts'",
        "base backup": "pg_basebackup -c fast -D backup -X stream --tablespace-mapping=$PWD/space=$PWD/space2 && ls backup/PG_VERSION",
        "reloads": "server reload",
        "ends at once": "server -m immediate stop >/dev/null && echo stopped",
        "recovers": "server start >/dev/null && grep -c 'automatic recovery in progress' log; "
                    "[ $(psql -Atc 'select count(*) from pgbench_history') = 200 ] && echo all",
        "ends": "server -m fast stop >/dev/null && echo stopped",
    }, before=CLUSTER, user=ACCOUNT, limit=200, environment={
        "PATH": f"{root}/usr/lib/postgresql/15/bin:/usr/bin:/bin",
        "LD_LIBRARY_PATH": f"{root}/usr/lib/x86_64-linux-gnu", "LC_ALL": "C.UTF-8"})


SUITES = [
    Suite("redis", tests_of_redis, SERVERS, quick=("*",)),
    Suite("nginx", tests_of_nginx, SERVERS, quick=("*",), needs=("curl",)),
    Suite("postgres", tests_of_postgres, POSTGRES),
]
