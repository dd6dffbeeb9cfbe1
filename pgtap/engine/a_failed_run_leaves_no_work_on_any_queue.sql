begin;
\ir ../helpers.psql
select plan(30);

-- Three ways to fail, with work queued, started and waiting for a retry on several queues.

select pg_temp.compile(
  'wide', 'step',
  jsonb_build_array(
    pg_temp.step('exhausts', '', pg_temp.options(max_attempts => 1)),
    pg_temp.step('decides'),
    pg_temp.step('feeds'),
    pg_temp.step('strict', 'decides', pg_temp.only_if('{"decides": 1}', 'fail')),
    pg_temp.map('fed', 'feeds'),
    pg_temp.map('queued', ''),
    pg_temp.map('started', ''),
    pg_temp.step('retrying'),
    pg_temp.step('done'),
    pg_temp.step('waiting', 'done,retrying')
  )
);

create function pg_temp.ready_to_fail(run_name text)
returns void
language plpgsql
as $$
begin
  perform pg_temp.start('wide', run_name, '[1, 2]');
  perform from pg_temp.claim('wide', 'started', 2);
  perform pg_temp.spoil('wide', 'retrying', 'later');
  perform pg_temp.work('wide', 'done');
end
$$;

create temporary table way (name text, failed_step text, finished_step text);
insert into way values
('exhausted', 'exhausts', 'exhausts'), ('condition', 'strict', 'decides'), ('type', 'feeds', 'feeds');

select pg_temp.ready_to_fail(name) from way;
-- The other runs wait while one fails; each step is claimed for all three.
select count(*) from unnest(array['exhausts', 'decides', 'feeds']) as step_slug cross join lateral pg_temp.claim('wide', step_slug, 3);

select is((select status from pgflow.fail_task(pg_temp.id('exhausted'), 'exhausts', 0, 'x')), 'failed', 'a task exhausts its attempts');
select is(
  (select status from pgflow.complete_task(pg_temp.id('condition'), 'decides', 0, '2')), 'completed',
  'a task completes and the condition behind it fails the run'
);
select is((select status from pgflow.complete_task(pg_temp.id('type'), 'feeds', 0, '{}')), 'failed', 'a map is fed something else than an array');

select is((select status from pgflow.runs where run_id = pg_temp.id(name)), 'failed', name || ': the run is failed') from way;
select is(
  (select array_agg(step_slug) from pgflow.step_states where run_id = pg_temp.id(name) and status = 'failed'), array[failed_step],
  name || ': one step is failed'
)
from way;
select is(
  (
    select jsonb_object_agg(tasks.step_slug, tasks.status)
    from (
      select task.step_slug, string_agg(task.status, ', ' order by task.task_index) as status
      from pgflow.step_tasks as task
      where task.run_id = pg_temp.id(name)
        and task.step_slug <> finished_step
      group by task.step_slug
    ) as tasks
  ),
  jsonb_build_object(
    'exhausts', 'cancelled', 'decides', 'cancelled', 'feeds', 'cancelled', 'queued', 'cancelled, cancelled', 'started', 'cancelled, cancelled',
    'retrying', 'cancelled', 'done', 'completed'
  ) - finished_step,
  name || ': every active task is cancelled, on whichever queue'
)
from way;
select is(
  (select bool_and((status = 'cancelled') = (cancelled_at is not null)) from pgflow.step_tasks where run_id = pg_temp.id(name)), true,
  name || ': and says when'
)
from way;
select is(
  (
    select count(*)
    from pgflow.step_tasks as task
    inner join pg_temp.archived('wide') as message
      on message.queue_name = task.queue_name
      and message.msg_id = task.message_id
      and (message.message ->> 'run_id')::uuid = task.run_id
    where task.run_id = pg_temp.id(name)
  ),
  9::bigint,
  name || ': each message is in the archive of its own queue'
)
from way;
select pg_temp.nothing_left('wide', 'nothing is left on any queue');
select is((select count(*) from pg_temp.archived('wide')), 27::bigint, 'nothing is archived twice');

-- A step that is skipped takes its work with it, on its own queue and on those of steps that a cascade reaches.

select pg_temp.compile(
  'gated', 'step',
  jsonb_build_array(
    pg_temp.map('gate', '', pg_temp.options(max_attempts => 1) || '{"whenExhausted": "skip-cascade"}'),
    pg_temp.step('left', 'gate'), pg_temp.step('right', 'gate'), pg_temp.step('free'), pg_temp.step('join', 'left,right,free')
  )
);
select pg_temp.start('gated', 'g', '[1, 2, 3]');
select count(*) from pg_temp.claim('gated', 'gate', 2);
select is((select status from pgflow.fail_task(pg_temp.id('g'), 'gate', 1, 'x')), 'failed', 'a gate with three tasks breaks');
select is(pg_temp.tasks('g', 'gate'), 'skipped, failed, skipped', 'its other tasks are skipped');
select is(
  (select array_agg(queue_name) from pg_temp.messages('gated')), array['gated__free'], 'only the message of another branch is still on a queue'
);
select is(
  (select count(*) from pg_temp.archived('gated') where queue_name = 'gated__gate'), 3::bigint, 'the others are in the archive'
);
select pg_temp.work('gated', 'free');
select is(pg_temp.run('g'), 'completed, 0 left', 'the run completes');
select pg_temp.nothing_left('gated', 'nothing is left of it');

-- Both at once, in one call and over two runs.

select pg_temp.start('wide', 'fails', '[]'), pg_temp.start('wide', 'lives', '[]');
select count(*) from pg_temp.claim('wide', 'exhausts', 2);
select count(*) from pg_temp.claim('wide', 'done', 2);
select is(
  (
    select array_agg(status)
    from pgflow.fail_tasks(
      jsonb_build_array(
        jsonb_build_object('run_id', pg_temp.id('fails'), 'step_slug', 'exhausts', 'task_index', 0, 'error_message', 'x'),
        jsonb_build_object('run_id', pg_temp.id('lives'), 'step_slug', 'done', 'task_index', 0, 'error_message', 'y')
      )
    )
  ),
  array['failed', 'retrying'],
  'a batch can fail one run and retry a task of another'
);
select is(
  array[(select status from pgflow.runs where run_id = pg_temp.id('fails')), (select status from pgflow.runs where run_id = pg_temp.id('lives'))],
  array['failed', 'started'],
  'each run goes its own way'
);
select is_empty(
  $$ select * from pg_temp.messages('wide') where (message ->> 'run_id')::uuid = pg_temp.id('fails') $$, 'the failed one has no message left'
);
select pg_temp.is_sound('wide', 'the other is sound');

select * from finish();
rollback;
