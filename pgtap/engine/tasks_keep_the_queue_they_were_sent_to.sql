begin;
\ir ../helpers.psql
select plan(26);

select pg_temp.compile(
  'moved', 'step',
  jsonb_build_array(
    pg_temp.step('completes'),
    pg_temp.step('retries', '', pg_temp.options(base_delay => 0)),
    pg_temp.map('skips', '', pg_temp.options(max_attempts => 1) || '{"whenExhausted": "skip"}'),
    pg_temp.step('stalls', '', pg_temp.options(timeout => 5)),
    pg_temp.step('behind', 'completes'),
    pg_temp.step('spare'),
    pg_temp.step('fatal', 'behind', pg_temp.options(max_attempts => 1))
  )
);
select pg_temp.start('moved', 'r', '[1, 2]');
select pg_temp.take('moved', 'completes'), pg_temp.take('moved', 'retries'), pg_temp.take('moved', 'stalls');
select count(*) from pg_temp.claim('moved', 'skips', 1);
select pg_temp.work('moved', 'spare');

-- A direct change of a task's queue.

select pg_temp.picture('moved') as before \gset
select throws_ok(
  $$ update pgflow.step_tasks set queue_name = 'moved__spare' where run_id = pg_temp.id('r') and step_slug = 'completes' $$,
  'PF019', null, 'the queue of a task can''t be changed by hand'
);
select throws_ok(
  $$ update pgflow.step_tasks set queue_name = upper(queue_name) $$,
  'PF019', null, 'not even its spelling'
);
select lives_ok(
  $$ update pgflow.step_tasks set queue_name = queue_name $$,
  'an update that keeps it is none'
);
select is(pg_temp.picture('moved'), :'before', 'nothing was changed');

-- All routes are turned by hand while work is queued and in progress.

update pgflow.steps set queue_name = 'moved__spare' where flow_slug = 'moved' and step_slug <> 'spare';

select is(
  (select array_agg(step_slug || ' on ' || queue_name order by step_slug, task_index) from pgflow.step_tasks where run_id = pg_temp.id('r')),
  array[
    'completes on moved__completes', 'retries on moved__retries', 'skips on moved__skips', 'skips on moved__skips', 'spare on moved__spare',
    'stalls on moved__stalls'
  ],
  'tasks keep the queue that their message was sent to'
);

-- fail and retry

select is((select status from pgflow.fail_task(pg_temp.id('r'), 'retries', 0, 'x')), 'queued', 'a task is retried');
select results_eq(
  $$ select queue_name, vt <= clock_timestamp() from pg_temp.messages('moved') where message ->> 'step_slug' = 'retries' $$,
  $$ values ('moved__retries', true) $$,
  'its message is visible again where it was'
);
select is((select attempt from pg_temp.claim('moved', 'retries') where outcome = 'claimed'), 2, 'and can be claimed there');
select is((select status from pgflow.complete_task(pg_temp.id('r'), 'retries', 0, '1')), 'completed', 'and completed');
select is((select count(*) from pgmq.a_moved__retries), 1::bigint, 'it is archived there');
select is((select count(*) from pgmq.q_moved__retries), 0::bigint, 'and gone from there');

-- skip

select is((select status from pgflow.fail_task(pg_temp.id('r'), 'skips', 0, 'x')), 'failed', 'a map is skipped');
select is(pg_temp.tasks('r', 'skips'), 'failed, skipped', 'with its other task');
select is((select count(*) from pgmq.a_moved__skips), 2::bigint, 'both messages are archived where they were');
select is((select count(*) from pgmq.q_moved__skips), 0::bigint, 'and gone from there');

-- requeue

update pgflow.step_tasks
set started_at = clock_timestamp() - interval '1 hour'
where run_id = pg_temp.id('r')
  and step_slug = 'stalls';
select is(pgflow.requeue_stalled_tasks(), 1, 'a stalled task is requeued');
select results_eq(
  $$ select queue_name, vt <= clock_timestamp() from pg_temp.messages('moved') where message ->> 'step_slug' = 'stalls' $$,
  $$ values ('moved__stalls', true) $$,
  'its message is visible again where it was'
);
select is((select count(*) from pg_temp.claim('moved', 'stalls') where outcome = 'claimed'), 1::bigint, 'and can be claimed there');

-- complete

select is((select status from pgflow.complete_task(pg_temp.id('r'), 'completes', 0, '1')), 'completed', 'a task completes');
select is((select count(*) from pgmq.a_moved__completes), 1::bigint, 'its message is archived where it was');
select is((select count(*) from pgmq.q_moved__completes), 0::bigint, 'and gone from there');
select is(
  (select queue_name from pgflow.step_tasks where (run_id, step_slug) = (pg_temp.id('r'), 'behind')), 'moved__spare',
  'what starts now is sent to the route as it is now'
);
select is(
  (select array_agg(queue_name) from pg_temp.messages('moved') where message ->> 'step_slug' = 'behind'), array['moved__spare'], 'where its message is'
);

-- the run fails

update pgflow.step_tasks
set status = 'started', started_at = clock_timestamp(), attempts_count = 3
where run_id = pg_temp.id('r')
  and step_slug = 'behind';
select is((select status from pgflow.fail_task(pg_temp.id('r'), 'behind', 0, 'x')), 'failed', 'the run fails');
select is(pg_temp.tasks('r', 'stalls'), 'cancelled', 'what was still active is cancelled');
select is((select count(*) from pg_temp.messages('moved')), 0::bigint, 'and no message is left on any queue, by whichever route it came');

select * from finish();
rollback;
