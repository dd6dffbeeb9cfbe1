begin;
\ir helpers.psql

select plan(19);

select pg_temp.compile('f', 'step', jsonb_build_array(pg_temp.step('a', more => pg_temp.options(timeout => 60))));
select pg_temp.compile('g', 'flow', jsonb_build_array(pg_temp.step('a')));
select pgflow.register_worker(pg_temp.id('second worker'), 'f_a', 'f', 'a');
select pg_temp.start('f', 'r');

select is((pg_temp.take('f', 'a')).attempt, 1, 'a worker claims a task');
select pgmq.set_vt('f__a', 1, 0);

select results_eq(
  $$select msg_id, outcome, reason, flow_slug, run_id, attempt, input from pg_temp.claim_messages('f', 'a', array[1])$$,
  $$
    values (
      1::bigint, 'deferred', 'attempt 1 of the task is in progress', null::text, null::uuid, null::int, null::jsonb
    )
  $$,
  'its message, visible again, is deferred, for the worker that has it'
);
select is(
  pg_temp.vt('f__a', 1),
  (pg_temp.task('r', 'a')).started_at + interval '90 s',
  'and hidden until the boundary of the attempt in progress'
);
select is(pg_temp.attempts('r', 'a'), 'started 1', 'no attempt is used');
select is((pg_temp.task('r', 'a')).last_worker_id, pg_temp.worker('f', 'a'), 'the task stays with its worker');

select pgmq.set_vt('f__a', 1, 0);
select results_eq(
  $$select outcome from pgflow.poll_tasks(pg_temp.id('second worker'), 10, 0)$$, array['deferred'],
  'a poll of another worker defers it, too'
);
select is(
  pg_temp.vt('f__a', 1), (pg_temp.task('r', 'a')).started_at + interval '90 s', 'until the same moment'
);
select is((pg_temp.task('r', 'a')).last_worker_id, pg_temp.worker('f', 'a'), 'and takes nothing over');
select is_empty(
  $$select * from pgflow.poll_tasks(pg_temp.id('second worker'), 10, 0)$$,
  'the next poll does not see it'
);

-- An extended lease counts.
select is(
  pgflow.extend_task(pg_temp.id('r'), 'a', 0, pg_temp.worker('f', 'a'), 1, 1000),
  (pg_temp.task('r', 'a')).lease_extended_until + interval '30 s',
  'the worker extends its lease'
);
select pgmq.set_vt('f__a', 1, 0);
select is(
  (select outcome from pg_temp.claim_messages('f', 'a', array[1])), 'deferred',
  'visible again, it is deferred'
);
select is(
  pg_temp.vt('f__a', 1), (pg_temp.task('r', 'a')).lease_extended_until + interval '30 s',
  'until the end of the extended lease'
);

-- Past the boundary it is still not the claim's to take, and must not be read again at once.
select pg_temp.age('r', interval '1 hour');
select pgmq.set_vt('f__a', 1, 0);
create temporary table claimed_at as
select clock_timestamp() as moment;
select is((select outcome from pg_temp.claim('f', 'a')), 'deferred', 'past the boundary a claim defers, too');
select ok(
  pg_temp.vt('f__a', 1) >= moment + interval '30 s' and pg_temp.vt('f__a', 1) <= clock_timestamp() + interval '30 s',
  'for 30 seconds'
) from claimed_at;
select is(pg_temp.attempts('r', 'a'), 'started 1', 'and leaves the task to recovery');

select ok(enabled, 'a visible message of a started task never disables a function')
from pgflow.worker_functions
where function_name = 'f_a';
select is(
  (
    select stop_reason
    from pgflow.workers
    where worker_id = pg_temp.id('second worker')
  ),
  null, 'nor stops a worker'
);

-- The function of 0.14 has no word for it.
select pg_temp.start('g', 's');
select pgflow.start_tasks('g', array[1], pg_temp.worker('g'));
select pgmq.set_vt('g', 1, 0);
select is_empty(
  $$select * from pgflow.start_tasks('g', array[1], pg_temp.worker('g'))$$,
  'start_tasks() gives no row for it'
);
select is(
  pg_temp.attempts('s', 'a') || ', ' || pg_temp.whereabouts('g', 1), 'started 1, visible',
  'and changes nothing, the archive included'
);

select *
from finish();
rollback;
