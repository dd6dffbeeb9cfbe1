-- extend_task(): a worker that is slow but alive keeps its task.
begin;
\ir helpers.psql

select plan(32);

select pg_temp.compile('f', 'step', jsonb_build_array(pg_temp.map('a', more => pg_temp.options(timeout => 60))));
select pgflow.register_worker(pg_temp.id('other'), 'f_a', 'f', 'a');
select pg_temp.start('f', 'r', '[1, 2, 3]');
select is((select count(*) from pg_temp.claim('f', 'a', 2)), 2::bigint, 'a worker claims two of three tasks');

create function pg_temp.extend(
  task_index int, seconds int, attempt int default 1, worker_id uuid default pg_temp.worker('f', 'a')
)
returns timestamptz
language sql
as $$
  select pgflow.extend_task(pg_temp.id('r'), 'a', extend.task_index, extend.worker_id, extend.attempt, extend.seconds)
$$;

create temporary table clock as
select clock_timestamp() as before;
create temporary table extended as
select
  pg_temp.extend(0, 600) as boundary,
  clock_timestamp() as after;

select ok(
  (pg_temp.task('r', 'a', 0)).lease_extended_until between before + interval '600 s' and after + interval '600 s',
  'the lease is extended by the seconds, counted from now'
)
from clock, extended;
select is(
  boundary,
  pgflow.recovery_boundary(
    (pg_temp.task('r', 'a', 0)).started_at, 60, (pg_temp.task('r', 'a', 0)).lease_extended_until
  ),
  'what it returns is the recovery boundary'
)
from extended;
select is(boundary, (pg_temp.task('r', 'a', 0)).lease_extended_until + interval '30 s', '30 seconds after the lease')
from extended;
select is(pg_temp.vt('f__a', 1), boundary, 'the message is hidden until the same moment') from extended;
select is(
  pg_temp.vt('f__a', 2), (pg_temp.task('r', 'a', 1)).started_at + interval '90 s',
  'the other message is as it was'
);
select is(pg_temp.attempts('r', 'a'), 'started 1, started 1, queued 0', 'no attempt is used');

-- Less than the timeout leaves: the task keeps what it had.
select is(
  pg_temp.extend(1, 1), (pg_temp.task('r', 'a', 1)).started_at + interval '90 s',
  'an extension that ends before the timeout shortens nothing'
);

-- Visible again for whatever reason: hidden by the extension.
select pgmq.set_vt('f__a', 1, 0);
select ok(pg_temp.extend(0, 1200) > (select boundary from extended), 'a second extension reaches farther');
select is(
  pg_temp.vt('f__a', 1), (pg_temp.task('r', 'a', 0)).lease_extended_until + interval '30 s',
  'and hides a message that had become visible'
);

-- Recovery keeps away as long as the lease lasts, and no longer.
select pg_temp.age('r', interval '1000 s');
select pgflow.extend_task(pg_temp.id('r'), 'a', 1, pg_temp.worker('f', 'a'), 1, 5);
select is(pgflow.requeue_stalled_tasks(), 0, 'past its timeout an extended task is not taken away');
select pg_temp.age('r', interval '40 s');
select is(pgflow.requeue_stalled_tasks(), 1, 'past its lease, it is');
select is(pg_temp.attempts('r', 'a'), 'started 1, queued 1, queued 0', 'the one whose lease ran out');

-- Not the caller's any more.
create temporary table picture_before as
select pg_temp.picture('f') as picture;
select is(pg_temp.extend(1, 600), null, 'a requeued task can''t be extended');
select is(pg_temp.extend(2, 600, 0), null, 'nor one that was never claimed');
select is(pg_temp.extend(0, 600, 1, pg_temp.id('other')), null, 'nor another worker''s');
select is(pg_temp.extend(0, 600, 2), null, 'nor another attempt');
select is(pg_temp.extend(0, 600, 0), null, 'nor an earlier one');
select is(pg_temp.extend(0, 600, null), null, 'nor one without an attempt');
select is(pg_temp.extend(0, 600, 1, null), null, 'nor without a worker');
select is(pg_temp.extend(7, 600), null, 'nor a task that is not there');
select is(
  pgflow.extend_task(pg_temp.id('nowhere'), 'a', 0, pg_temp.worker('f', 'a'), 1, 600), null,
  'nor a run that is not there'
);
select is(pg_temp.picture('f'), picture, 'and nothing has changed') from picture_before;

-- The same worker, its next attempt.
select is(
  (select attempt from pg_temp.claim_messages('f', 'a', array[2])), 2, 'the worker claims the requeued task again'
);
select is(pg_temp.extend(1, 600, 1), null, 'its first attempt can''t be extended any more');
select isnt(pg_temp.extend(1, 600, 2), null, 'the second one can');
select is(
  (select status from pgflow.complete_task(pg_temp.id('r'), 'a', 1, '1')), 'completed', 'it completes'
);
select is(pg_temp.extend(1, 600, 2), null, 'a completed task can''t be extended');

-- Bad and extreme arguments.
select throws_ok('select pg_temp.extend(0, 0)', 'PF019', null, 'zero seconds are refused');
select throws_ok('select pg_temp.extend(0, -60)', 'PF019', null, 'so are negative ones');
select throws_ok('select pg_temp.extend(0, null)', 'PF019', null, 'and none');
select ok(
  pg_temp.extend(0, 2147483647) <= clock_timestamp() + make_interval(secs => 31536000 + 30),
  'an extension is capped at a year'
);

select *
from finish();
rollback;
