-- A worker that died with a task: past the recovery boundary the task is queued again, can be read at once, and what
-- the dead worker says later counts for nothing.
begin;
\ir ../claiming/helpers.psql

select plan(44);

select pg_temp.compile(
  'f', 'step', jsonb_build_array(pg_temp.step('a'), pg_temp.step('b', 'a')), '{"maxAttempts": 5, "timeout": 60}'
);
select pgflow.register_worker(pg_temp.id('second'), 'f_a', 'f', 'a');
select pg_temp.start('f', 'r');

-- Died between read and claim: nothing to recover.
select is((select count(*) from pgmq.read('f__a', 1800, 10)), 1::bigint, 'a client reads and dies');
select is(pgflow.requeue_stalled_tasks(), 0, 'recovery has nothing to do');
select is(pg_temp.attempts('r', 'a'), 'queued 0', 'no attempt is used');
select is_empty($$select * from pg_temp.claim('f', 'a')$$, 'until the time of the read is over the message is hidden');
select pg_temp.pass_time('f');
select is((pg_temp.take('f', 'a')).attempt, 1, 'then another worker gets it, as the first attempt');

-- Died after the claim.
select is(pgflow.requeue_stalled_tasks(), 0, 'an attempt in progress is left alone');
select pg_temp.age('r', interval '89 s');
select is(pgflow.requeue_stalled_tasks(), 0, 'just before the boundary, too');
select pg_temp.age('r', interval '1 s');
select results_eq(
  $$
    select
      step_slug, task_index, attempts_count, max_attempts, requeued_count, may_start_again,
      recovery_boundary <= clock_timestamp()
    from pgflow.stalled_tasks
  $$,
  $$values ('a', 0, 1, 5, 0, true, true)$$,
  'past it, the task is shown as stalled'
);
select is(pg_temp.whereabouts('f__a', 1), 'hidden', 'the message is still hidden');
select is(pgflow.requeue_stalled_tasks(), 1, 'and is queued again, and counted');
select is(pg_temp.attempts('r', 'a'), 'queued 1', 'the lost attempt stays used');
select is(pg_temp.whereabouts('f__a', 1), 'visible', 'the message can be read at once');
select results_eq(
  $$
    select requeued_count, last_requeued_at between now() and clock_timestamp(), started_at, permanently_stalled_at
    from pg_temp.task('r', 'a')
  $$,
  $$values (1, true, null::timestamptz, null::timestamptz)$$,
  'it is recorded'
);
select is(pgflow.requeue_stalled_tasks(), 0, 'a second sweep has nothing to do');
select is_empty('select * from pgflow.stalled_tasks', 'nothing is stalled any more');

-- The dead worker was only slow. Nobody has the task now.
create temporary table picture_before as
select pg_temp.picture('f') as picture;

create function pg_temp.result(attempt int, more jsonb)
returns jsonb
language sql
as $$
  select jsonb_build_array(
    jsonb_build_object('run_id', pg_temp.id('r'), 'step_slug', 'a', 'task_index', 0, 'attempt', result.attempt) || more
  )
$$;

select is(
  (select status from pgflow.fail_task(pg_temp.id('r'), 'a', 0, 'too late')), 'queued',
  'a late failure of a requeued task'
);
select is(pg_temp.picture('f'), picture, 'neither delays the task nor counts') from picture_before;
select is(
  (select status from pgflow.fail_tasks(pg_temp.result(1, '{"error_message": "too late"}'))), 'superseded',
  'with its attempt it is told so'
);
select is(
  (select status from pgflow.fail_tasks(pg_temp.result(1, '{}') #- '{0,attempt}')), 'superseded', 'and without it'
);
select is((select status from pgflow.complete_task(pg_temp.id('r'), 'a', 0, '"late"')), 'queued', 'a late completion');
select is(pg_temp.picture('f'), picture, 'changes nothing, and the message stays') from picture_before;
select is(
  (select status from pgflow.complete_tasks(pg_temp.result(1, '{"output": "late"}'))), 'superseded',
  'with its attempt it is told so'
);
select is(
  pgflow.extend_task(pg_temp.id('r'), 'a', 0, pg_temp.worker('f', 'a'), 1, 600), null, 'nor can it extend its lease'
);
select is(pg_temp.picture('f'), picture, 'nothing of it changed a thing') from picture_before;

-- Now somebody has it.
select is(
  (select attempt from pgflow.poll_tasks(pg_temp.id('second'), 1, 0)), 2,
  'the next worker claims it, as the second attempt'
);
update picture_before set picture = pg_temp.picture('f');
select is(
  (select status from pgflow.complete_tasks(pg_temp.result(1, '{"output": "x"}'))), 'superseded',
  'the first worker completes, too late'
);
select is(
  (select status from pgflow.fail_tasks(pg_temp.result(1, '{"error_message": "x"}'))), 'superseded',
  'or fails, too late'
);
select is(pg_temp.picture('f'), picture, 'the second attempt goes on undisturbed') from picture_before;
select is(
  (select status from pgflow.complete_tasks(pg_temp.result(2, '{"output": "y"}'))), 'completed',
  'the second worker completes'
);
select is(
  (select status from pgflow.complete_tasks(pg_temp.result(1, '{"output": "x"}'))), 'superseded',
  'the first one tries once more'
);
select is((pg_temp.task('r', 'a')).output, '"y"'::jsonb, 'there is one result');
select is((pg_temp.task('r', 'b')).status, 'queued', 'the dependent started');
select is(
  (select count(*) from pg_temp.messages('f')), 1::bigint, 'once'
);
select is((select input from pg_temp.claim('f', 'b')), '{"a": "y"}'::jsonb, 'with that result');

-- Ended by somebody else meanwhile.
select pgflow.complete_task(pg_temp.id('r'), 'b', 0, '1');
select is(pg_temp.run('r'), 'completed, 0 left', 'the run completes');
select is(
  (select status from pgflow.fail_task(pg_temp.id('r'), 'a', 0, 'much too late')), 'completed',
  'a failure after the end'
);
select pg_temp.nothing_left('f', 'leaves all as it is');

-- A worker of pgflow 0.14 has no word for its attempt: whichever of the two is first counts, once.
select pg_temp.start('f', 'old');
select pg_temp.take('f', 'a');
select pg_temp.age('old', interval '90 s');
select is(pgflow.requeue_stalled_tasks(), 1, 'an attempt is lost');
select is((select attempt from pgflow.poll_tasks(pg_temp.id('second'), 1, 0)), 2, 'a second worker has the task');
select is(
  (select output from pgflow.complete_task(pg_temp.id('old'), 'a', 0, '"x"')), '"x"', 'the first one completes it, without its attempt'
);
select is(
  (
    select status
    from pgflow.complete_tasks(
      jsonb_build_array(jsonb_build_object('run_id', pg_temp.id('old'), 'step_slug', 'a', 'task_index', 0, 'attempt', 2, 'output', 'y'))
    )
  ),
  'ended', 'the second one is told that it has ended'
);
select is(
  (select output from pgflow.complete_task(pg_temp.id('old'), 'a', 0, '"y"')), '"x"', 'there is one result'
);
select results_eq($$select attempt, input from pg_temp.claim('f', 'b', 10)$$, $$values (1, '{"a": "x"}'::jsonb)$$, 'and the dependent started once');
select pg_temp.is_sound('f', 'all is sound');

select *
from finish();
rollback;
