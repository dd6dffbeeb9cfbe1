begin;
\ir ../helpers.psql
select plan(31);

select pg_temp.compile(
  'retry', 'step',
  jsonb_build_array(
    pg_temp.step('own', '', pg_temp.options(max_attempts => 3, base_delay => 2)),
    pg_temp.step('flows'),
    pg_temp.map('each', 'own', pg_temp.options(max_attempts => 2, base_delay => 0))
  ),
  '{"maxAttempts": 2, "baseDelay": 7, "timeout": 60}'
);
select pg_temp.start('retry', 'r');

-- The first failure.

create temporary table before_failure as
select clock_timestamp() as failed_at, task.*
from pg_temp.take('retry', 'own') as task;

select results_eq(
  $$
    select
      status, attempts_count, error_message, started_at, completed_at, failed_at, output, queue_name,
      message_id = (select msg_id from before_failure)
    from pgflow.fail_task(pg_temp.id('r'), 'own', 0, 'no connection')
  $$,
  $$
    values (
      'queued', 1, 'no connection', null::timestamptz, null::timestamptz, null::timestamptz, null::jsonb, 'retry__own',
      true
    )
  $$,
  'a failed attempt puts the task back with its message, keeps the error and clears started_at'
);
select is(
  (
    select message.vt >= before_failure.failed_at + interval '4 seconds' and message.vt <= clock_timestamp() + interval '4 seconds'
    from pg_temp.messages('retry') as message
    cross join before_failure
    where message.queue_name = 'retry__own'
  ),
  true,
  'the message is hidden for the base delay times two to the power of the attempts'
);
select is_empty($$ select * from pg_temp.claim('retry', 'own') $$, 'until then there is nothing to claim');
select results_eq(
  $$ select status, remaining_tasks, error_message from pgflow.step_states where (run_id, step_slug) = (pg_temp.id('r'), 'own') $$,
  $$ values ('started', 1, null::text) $$,
  'the step stays as it was'
);
select is(pg_temp.run('r'), 'started, 3 left', 'and so does the run');
select pg_temp.is_sound('retry', 'a task that waits for its retry is sound');

-- The second one, and an end.

select pg_temp.pass_time('retry');
select is((select (pg_temp.take('retry', 'own')).attempt), 2, 'the next attempt is the second one');
update before_failure set failed_at = clock_timestamp();
select results_eq(
  $$ select status, attempts_count, error_message from pgflow.fail_task(pg_temp.id('r'), 'own', 0, 'again') $$,
  $$ values ('queued', 2, 'again') $$,
  'it can fail too, the latest error stays'
);
select is(
  (
    select message.vt >= before_failure.failed_at + interval '8 seconds' and message.vt <= clock_timestamp() + interval '8 seconds'
    from pg_temp.messages('retry') as message
    cross join before_failure
    where message.queue_name = 'retry__own'
  ),
  true,
  'each delay is twice the one before'
);
select pg_temp.pass_time('retry');
select pg_temp.work('retry', 'own', '[1, 2]');
select results_eq(
  $$
    select status, attempts_count, output, error_message, started_at is not null, completed_at is not null, failed_at
    from pgflow.step_tasks
    where (run_id, step_slug) = (pg_temp.id('r'), 'own')
  $$,
  $$ values ('completed', 3, '[1, 2]'::jsonb, 'again', true, true, null::timestamptz) $$,
  'the last allowed attempt can complete the task'
);

-- Options of the flow apply where a step has none.

select is((select (pg_temp.take('retry', 'flows')).attempt), 1, 'another step starts');
update before_failure set failed_at = clock_timestamp();
select is((select status from pgflow.fail_task(pg_temp.id('r'), 'flows', 0, 'x')), 'queued', 'it fails once');
select is(
  (
    select message.vt >= before_failure.failed_at + interval '14 seconds' and message.vt <= clock_timestamp() + interval '14 seconds'
    from pg_temp.messages('retry') as message
    cross join before_failure
    where message.queue_name = 'retry__flows'
  ),
  true,
  'a step without a base delay has that of its flow'
);
select pg_temp.pass_time('retry');
select pg_temp.work('retry', 'flows');

-- A base delay of 0, and one task of a map.

select results_eq(
  $$ select task_index, attempt from pg_temp.claim('retry', 'each', 10) order by 1 $$,
  $$ values (0, 1), (1, 1) $$,
  'both tasks of a map start'
);
select is((select status from pgflow.fail_task(pg_temp.id('r'), 'each', 1, null)), 'queued', 'an error message may be NULL');
select is((select status from pgflow.complete_task(pg_temp.id('r'), 'each', 0, '1')), 'completed', 'the other one completes');
select results_eq(
  $$ select task_index, attempt, input from pg_temp.claim('retry', 'each', 10) $$,
  $$ values (1, 2, '2'::jsonb) $$,
  'with a base delay of 0 a task can be claimed again at once, with the same input'
);
select is((select status from pgflow.complete_task(pg_temp.id('r'), 'each', 1, '2')), 'completed', 'and completes');
select is(pg_temp.run('r'), 'completed, 0 left', 'so does the run');
select is(pg_temp.output('r'), '{"flows": {}, "each": [1, 2]}', 'with everything in its output');
select pg_temp.nothing_left('retry', 'nothing is left of it');

-- One attempt, and none.

select pg_temp.compile(
  'once', 'step',
  jsonb_build_array(
    pg_temp.step('one', '', pg_temp.options(max_attempts => 1)),
    pg_temp.step('zero', '', pg_temp.options(max_attempts => 0) || '{"whenExhausted": "skip"}'),
    pg_temp.step('other')
  )
);
select pg_temp.start('once', 'once');
select is((select (pg_temp.take('once', 'zero')).attempt), 1, 'a step with max attempts 0 is started once');
select results_eq(
  $$ select status, attempts_count from pgflow.fail_task(pg_temp.id('once'), 'zero', 0, 'no') $$,
  $$ values ('failed', 1) $$,
  'and not retried'
);
select is(pg_temp.steps('once'), 'one started, zero skipped (handler_failed), other started', 'whenExhausted applies');
select is((select (pg_temp.take('once', 'one')).attempt), 1, 'a step with max attempts 1 is started once');
select results_eq(
  $$ select status, attempts_count, error_message, failed_at is not null from pgflow.fail_task(pg_temp.id('once'), 'one', 0, 'no') $$,
  $$ values ('failed', 1, 'no', true) $$,
  'and not retried either'
);
select is(pg_temp.run('once'), 'failed, 2 left', 'the run fails');
select pg_temp.nothing_left('once', 'nothing is left of this');

-- The delay itself.

select results_eq(
  $$
    select pgflow.calculate_retry_delay(base, attempts)
    from (values (1::numeric, 0), (1, 1), (5, 3), (0, 9), (2.5, 1), (0.3, 2), (1, 24)) as delay (base, attempts)
  $$,
  $$ values (1), (2), (40), (0), (5), (1), (16777216) $$,
  'calculate_retry_delay is floor(base_delay * 2 ^ attempts_count)'
);
select is(
  (select array_agg(pgflow.calculate_retry_delay(base, attempts)) from (values (null::numeric, 1), (1, null::int)) as delay (base, attempts)),
  array[null, null]::int[],
  'and unknown for unknown figures'
);
select is(
  (select concat(provolatile, proparallel) from pg_proc where oid = 'pgflow.calculate_retry_delay(numeric, int)'::regprocedure), 'is',
  'it is immutable and parallel safe'
);

select * from finish();
rollback;
