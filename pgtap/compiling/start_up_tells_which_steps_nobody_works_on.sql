begin;
\ir helpers.psql
select plan(14);

create function pg_temp.uncovered(flow_slug text, queue_mode text)
returns jsonb
language sql
as $$
  select pgflow.ensure_flow_compiled(
    uncovered.flow_slug,
    pg_temp.shape(pg_temp.step('a'), pg_temp.step('B'), pg_temp.step('c')),
    false,
    uncovered.queue_mode
  ) -> 'uncovered'
$$;

select is(pg_temp.uncovered('Steps', 'step'), '["a", "B", "c"]', 'a new flow has no workers');
select from pgflow.register_worker(pg_temp.id('b1'), 'b', 'Steps', 'B');
select is(pg_temp.uncovered('Steps', 'step'), '["a", "c"]', 'a live worker covers its step');
select from pgflow.register_worker(pg_temp.id('a1'), 'a', 'Steps', 'a');
select from pgflow.register_worker(pg_temp.id('c1'), 'c', 'Steps', 'c');
select is(pg_temp.uncovered('Steps', 'step'), '[]', 'with one for every step all are covered');
update pgflow.workers
set last_heartbeat_at = clock_timestamp() - interval '31 seconds'
where worker_id = pg_temp.id('a1');
select is(pg_temp.uncovered('Steps', 'step'), '["a"]', 'a worker without a fresh heartbeat covers nothing');
update pgflow.workers
set deprecated_at = clock_timestamp()
where worker_id = pg_temp.id('b1');
select is(pg_temp.uncovered('Steps', 'step'), '["a", "B"]', 'nor does a deprecated one');
update pgflow.workers
set stopped_at = clock_timestamp()
where worker_id = pg_temp.id('c1');
select is(pg_temp.uncovered('Steps', 'step'), '["a", "B", "c"]', 'nor one that stopped');
select from pgflow.register_worker(pg_temp.id('a2'), 'a', 'Steps', 'a');
select is(pg_temp.uncovered('Steps', 'step'), '["B", "c"]', 'a second worker takes over');
select from pgflow.disable_worker_function('a', 'broken');
select is(pg_temp.uncovered('Steps', 'step'), '["a", "B", "c"]', 'until its function is disabled');
select from pgflow.enable_worker_function('a');
update pgflow.workers
set generation = generation - 1
where worker_id = pg_temp.id('a2');
select is(pg_temp.uncovered('Steps', 'step'), '["a", "B", "c"]', 'a worker of an older generation covers nothing');

-- Flow mode.

select is(pg_temp.uncovered('Plain', 'flow'), '["a", "B", "c"]', 'nobody works on a new flow-mode flow');
insert into pgflow.workers (worker_id, queue_name, function_name) values (pg_temp.id('old'), 'Plain', 'old');
select is(
  pg_temp.uncovered('Plain', 'flow'),
  '[]',
  'a worker of pgflow 0.14 covers every step, whatever the case of its queue name'
);
update pgflow.workers
set stop_reason = 'told to'
where worker_id = pg_temp.id('old');
select is(pg_temp.uncovered('Plain', 'flow'), '["a", "B", "c"]', 'not when it was told to stop');
select from pgflow.register_worker(pg_temp.id('new'), 'new', 'Plain');
select is(pg_temp.uncovered('Plain', 'flow'), '[]', 'so does a registered one');
insert into pgflow.workers (worker_id, queue_name, function_name) values (pg_temp.id('intruder'), 'steps__a', 'old');
select is(
  pg_temp.uncovered('Steps', 'step'),
  '["a", "B", "c"]',
  'a worker of pgflow 0.14 never covers a step''s queue'
);

select * from finish();
rollback;
