begin;
\ir ../workers/helpers.psql

select plan(10);

select pg_temp.compile(
  'f',
  'step',
  jsonb_build_array(
    pg_temp.step('a'),
    pg_temp.map('b', 'a', pg_temp.options(max_attempts => 2, base_delay => 0)),
    pg_temp.step('c', 'a', pg_temp.only_if('{"a": ["never"]}')),
    pg_temp.step('d', 'b')
  )
);
select pg_temp.start('f', 'done');
select results_eq(
  $$
    select
      status, ended_at, steps_total, steps_waiting, steps_started, steps_completed, steps_skipped, steps_failed,
      tasks_total, tasks_queued, tasks_started, waits_for
    from pgflow.run_progress
  $$,
  $$
    values (
      'started', null::timestamptz, 4::bigint, 3::bigint, 1::bigint, 0::bigint, 0::bigint, 0::bigint,
      1::bigint, 1::bigint, 0::bigint, array['a']
    )
  $$,
  'a run that just started'
);
select pg_temp.work('f', 'a', '[1, 2]');
select pg_temp.spoil('f', 'b');
select results_eq(
  $$
    select steps_waiting, steps_started, steps_completed, steps_skipped, tasks_total, tasks_queued, tasks_completed, waits_for
    from pgflow.run_progress
  $$,
  $$values (1::bigint, 1::bigint, 1::bigint, 1::bigint, 3::bigint, 2::bigint, 1::bigint, array['b'])$$,
  'half-way, with a step skipped and a task to be tried again'
);
select is(pg_temp.drain('f'), 3, 'the rest is done');
select results_eq(
  $$
    select status, ended_at is not null, duration = ended_at - started_at, steps_completed, tasks_completed, tasks_retried, waits_for
    from pgflow.run_progress
  $$,
  $$values ('completed', true, true, 3::bigint, 4::bigint, 1::bigint, null::text[])$$,
  'at its end a run waits for nothing, and its time stands still'
);

select pg_temp.start('f', 'broken');
select pg_temp.work('f', 'a', '[1]');
select pg_temp.spoil('f', 'b');
select pg_temp.spoil('f', 'b');
select results_eq(
  $$select status, steps_failed, steps_waiting, tasks_failed, tasks_retried, waits_for from pgflow.run_progress where status <> 'completed'$$,
  $$values ('failed', 1::bigint, 1::bigint, 1::bigint, 1::bigint, null::text[])$$,
  'a failed run'
);

select results_eq(
  $$select step_slug, started, completed, failed, retried, skipped from pgflow.step_throughput where flow_slug = 'f' order by step_slug$$,
  $$
    values
    ('a', 2::bigint, 2::bigint, 0::bigint, 0::bigint, 0::bigint),
    ('b', 3, 2, 1, 2, 0),
    ('c', 0, 0, 0, 0, 2),
    ('d', 1, 1, 0, 0, 0)
  $$,
  'throughput counts tasks, extra attempts, and runs that skipped the step'
);

-- Figures that can be foretold: tasks that waited 1 to 4 seconds and took 10 to 40.
update pgflow.step_tasks
set
  queued_at = '2026-01-01 00:00:00+00',
  started_at = timestamptz '2026-01-01 00:00:00+00' + made.number * interval '1 second',
  completed_at = timestamptz '2026-01-01 00:00:00+00' + made.number * interval '11 seconds'
from (values ('done', 1), ('broken', 3)) as made (run_name, number)
where run_id = pg_temp.id(made.run_name)
  and step_slug = 'a';
select results_eq(
  $$select p50_wait, p95_wait, p50_duration, p95_duration from pgflow.step_throughput where step_slug = 'a'$$,
  $$values (interval '2 seconds', interval '2.9 seconds', interval '20 seconds', interval '29 seconds')$$,
  'medians and 95th percentiles of wait and duration'
);
select results_eq(
  $$select p50_wait, p50_duration from pgflow.step_throughput where step_slug = 'c'$$,
  $$values (null::interval, null::interval)$$,
  'a step that never ran has none'
);
update pgflow.step_tasks set queued_at = '2026-01-01 00:00:00+00', started_at = '2026-01-01 00:00:05+00' where step_slug = 'b' and attempts_count = 1;
update pgflow.step_tasks set queued_at = '2026-01-01 00:00:00+00', started_at = '2026-01-01 01:00:00+00' where step_slug = 'b' and attempts_count = 2;
select is(
  (select p95_wait from pgflow.step_throughput where step_slug = 'b'), interval '5 seconds',
  'tasks that were tried again don''t count as waiting'
);
select is(
  (select count(*) from pgflow.queue_sizes where queue_bytes > 0 and archive_bytes > 0), 4::bigint,
  'and the size of every queue and archive can be read'
);

select * from finish();
rollback;
