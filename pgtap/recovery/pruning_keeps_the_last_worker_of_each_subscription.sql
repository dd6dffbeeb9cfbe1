begin;
\ir ../workers/helpers.psql

select plan(7);

select pg_temp.step_flow('f', 'a', 'b');
select pg_temp.plain_flow('plain', 'a');

create function pg_temp.pruned(retention interval default '30 days', batch_size int default 1000)
returns bigint
language sql
as $$
  select deleted from pgflow.prune_data_older_than(retention, batch_size) where what = 'workers'
$$;

create function pg_temp.kept()
returns text
language sql
as $$
  select string_agg(name, ', ' order by name)
  from unnest(array['a1', 'a2', 'a3', 'a live', 'b1', 'b2', 'other', 'old1', 'old2', 'last']) as known (name)
  inner join pgflow.workers as worker on worker.worker_id = pg_temp.id(known.name)
$$;

select pgflow.register_worker(pg_temp.id(name), 'fn', 'f', 'a') from unnest(array['a1', 'a2', 'a3']) as name;
select pgflow.register_worker(pg_temp.id(name), 'fn', 'f', 'b') from unnest(array['b1', 'b2']) as name;
select pgflow.register_worker(pg_temp.id('other'), 'other', 'f', 'a');
select pg_temp.old_worker('old1', 'plain');
select pg_temp.old_worker('old2', 'plain');
select is(pg_temp.pruned('0'), 0::bigint, 'workers that are live stay, whatever the interval');

-- All fall silent; the later in the alphabet the later.
select pg_temp.silence(name, age)
from (
  values
  ('a1', interval '90 days'), ('a2', '80 days'), ('a3', '70 days'), ('b1', '60 days'), ('b2', '10 days'),
  ('other', '60 days'), ('old1', '90 days'), ('old2', '80 days')
) as known (name, age);
select is(pg_temp.pruned('30 days', 2), 2::bigint, 'one batch at a time');
select is(pg_temp.pruned('30 days', 2), 2::bigint, 'the dead go');
select is(pg_temp.kept(), 'a3, b2, old2, other', 'and the last one of each function and subscription stays');

-- With a successor the last one can go, once nothing refers to it.
select pgflow.register_worker(pg_temp.id('last'), 'fn', 'f', 'b');
select pg_temp.start('f', 'r');
update pgflow.step_tasks set last_worker_id = pg_temp.id('b2') where step_slug = 'b';
select pg_temp.silence('b2', '40 days');
select is(pg_temp.pruned(), 0::bigint, 'a worker that a task refers to stays');
update pgflow.step_tasks set last_worker_id = null;
select is(pg_temp.pruned(), 1::bigint, 'until none does');
select is(pg_temp.kept(), 'a3, last, old2, other', 'and makes place for its successor');

select * from finish();
rollback;
