-- Every rule is broken by hand, one at a time, and every one is found, with the thing it is about.
begin;
\ir ../workers/helpers.psql

select plan(44);

select pg_temp.compile('f', 'step', jsonb_build_array(pg_temp.step('a'), pg_temp.map('b', 'a'), pg_temp.step('c', 'b')));
select pg_temp.compile('Plain', 'flow', jsonb_build_array(pg_temp.step('a')));
select pg_temp.start('f', 'going');
select pg_temp.work('f', 'a', '[1, 2]');
select pg_temp.start('f', 'done');
select pg_temp.work('f', 'a', '[]');
select pg_temp.work('f', 'c');
select pg_temp.start('f', 'broken');
select pg_temp.work('f', 'a', '{}');
select pg_temp.start('Plain', 'plain');

create function pg_temp.task_name(run_name text, step_slug text, task_index int default 0)
returns text
language sql
as $$
  select format('task %s of step "%s" of run %s', task_index, step_slug, pg_temp.id(run_name))
$$;

create function pg_temp.step_name(run_name text, step_slug text)
returns text
language sql
as $$
  select format('step "%s" of run %s', step_slug, pg_temp.id(run_name))
$$;

-- What the check finds after some statements, which are undone.
create function pg_temp.found_after(statement text, flow_slug text default null)
returns setof text
language plpgsql
as $$
declare
  found_faults text[];
begin
  begin
    execute statement;
    found_faults := array(
      select fault.code || ': ' || fault.subject
      from pgflow.check_integrity(found_after.flow_slug) as fault
      where fault.detail <> ''
    );
    raise exception using errcode = 'ZZ999';
  exception
    when sqlstate 'ZZ999' then
      null;
  end;

  return query select unnest(found_faults);
end
$$;

create function pg_temp.finds(statement text, found_faults text[], description text)
returns text
language sql
as $$
  select bag_eq(format('select pg_temp.found_after(%L)', statement), found_faults, description)
$$;

select is_empty('select * from pgflow.check_integrity()', 'a sound database has no faults');
select results_eq(
  $$select run_id, status from pgflow.runs order by status, flow_slug collate "C"$$,
  $$values (pg_temp.id('done'), 'completed'), (pg_temp.id('broken'), 'failed'), (pg_temp.id('plain'), 'started'), (pg_temp.id('going'), 'started')$$,
  'though runs are going, completed and failed'
);

-- Tasks and messages.
select pg_temp.finds(
  $$delete from pgmq.q_f__b where msg_id = 1$$,
  array['task_without_a_message: ' || pg_temp.task_name('going', 'b')],
  'an active task has a message'
);
select pg_temp.finds(
  $$update pgflow.step_tasks set message_id = null where step_slug = 'b' and task_index = 0$$,
  array['task_without_a_message: ' || pg_temp.task_name('going', 'b'), 'message_without_a_task: message 1 on queue "f__b"'],
  'and knows which'
);
select pg_temp.finds(
  $$insert into pgmq.q_f__a (vt, message) values (now(), '{}')$$,
  array['message_without_a_task: message 4 on queue "f__a"'],
  'a message on an owned queue has a task'
);
select pg_temp.finds(
  $$
    insert into pgmq.q_f__a (msg_id, vt, message) overriding system value
    select msg_id, now(), message from pgmq.a_f__a where msg_id = 1
  $$,
  array['message_without_a_task: message 1 on queue "f__a"'],
  'and that task is active'
);
select pg_temp.finds(
  $$insert into pgmq.q_plain (vt, message) values (now() + interval '1 hour', '{}')$$,
  array['message_without_a_task: message 2 on queue "plain"'],
  'hidden messages count'
);
select pg_temp.finds(
  $$update pgmq.q_f__b set vt = clock_timestamp() + interval '10 years' where msg_id = 1$$,
  array['message_hidden_too_long: ' || pg_temp.task_name('going', 'b')],
  'the message of a queued task is not hidden for years'
);
select pg_temp.finds(
  $$
    update pgmq.q_f__b set vt = clock_timestamp() + interval '2 days' where msg_id = 1;
    update pgflow.steps set opt_start_delay = 2 * 86400 where flow_slug = 'f' and step_slug = 'b';
  $$,
  '{}',
  'unless its step says so'
);
select pg_temp.finds(
  $$
    update pgmq.q_f__b set vt = clock_timestamp() + interval '2 days' where msg_id = 1;
    update pgflow.steps set opt_base_delay = 86400 where flow_slug = 'f' and step_slug = 'b';
    update pgflow.step_tasks set attempts_count = 1 where step_slug = 'b' and task_index = 0;
  $$,
  '{}',
  'or its retries'
);
select pg_temp.finds(
  $$
    update pgmq.q_f__b set vt = clock_timestamp() + interval '59 minutes' where msg_id = 1
  $$,
  '{}',
  'nor is one that somebody has read and not claimed yet'
);

-- Counters.
select pg_temp.finds(
  $$update pgflow.step_states set remaining_tasks = 1 where step_slug = 'b' and status = 'started'$$,
  array['remaining_tasks: ' || pg_temp.step_name('going', 'b')],
  'remaining_tasks counts the active tasks'
);
select pg_temp.finds(
  $$update pgflow.step_states set initial_tasks = 3 where step_slug = 'b' and status = 'started'$$,
  array['initial_tasks: ' || pg_temp.step_name('going', 'b')],
  'initial_tasks counts all of them'
);
select pg_temp.finds(
  $$update pgflow.step_states set remaining_deps = 2 where step_slug = 'c' and status = 'created' and run_id = pg_temp.id('going')$$,
  array['remaining_deps: ' || pg_temp.step_name('going', 'c')],
  'remaining_deps counts the dependencies that have not ended'
);
select pg_temp.finds(
  $$update pgflow.runs set remaining_steps = 3 where run_id = pg_temp.id('going')$$,
  array['remaining_steps: run ' || pg_temp.id('going')],
  'remaining_steps counts the steps that have not ended'
);
select pg_temp.finds(
  $$delete from pgflow.step_states where run_id = pg_temp.id('going') and step_slug = 'c'$$,
  array['step_states: run ' || pg_temp.id('going'), 'remaining_steps: run ' || pg_temp.id('going')],
  'a run has every step of its flow'
);

-- Statuses.
select pg_temp.finds(
  $$
    update pgflow.step_states
    set status = 'skipped', skip_reason = 'condition_unmet', skipped_at = clock_timestamp()
    where step_slug = 'a' and flow_slug = 'Plain'
  $$,
  array['active_task_of_ended_parent: ' || pg_temp.task_name('plain', 'a'), 'remaining_steps: run ' || pg_temp.id('plain')],
  'no task is active under a step that ended'
);
select pg_temp.finds(
  $$update pgflow.runs set status = 'failed', failed_at = clock_timestamp() where flow_slug = 'Plain'$$,
  array['active_task_of_ended_parent: ' || pg_temp.task_name('plain', 'a')],
  'nor under a run that ended'
);
select pg_temp.finds(
  $$
    update pgflow.step_tasks
    set status = 'failed', completed_at = null, failed_at = clock_timestamp()
    where run_id = pg_temp.id('done') and step_slug = 'c'
  $$,
  array['unfinished_task_of_completed_step: ' || pg_temp.task_name('done', 'c')],
  'a completed step has completed tasks'
);
select pg_temp.finds(
  $$
    update pgflow.step_states
    set status = 'failed', output = null, completed_at = null, failed_at = clock_timestamp()
    where run_id = pg_temp.id('done') and step_slug = 'c'
  $$,
  array['open_step_of_completed_run: ' || pg_temp.step_name('done', 'c')],
  'a completed run has completed or skipped steps'
);
select pg_temp.finds(
  $$update pgflow.step_states set remaining_deps = 0 where run_id = pg_temp.id('going') and step_slug = 'c'$$,
  array['ready_step_not_started: ' || pg_temp.step_name('going', 'c'), 'remaining_deps: ' || pg_temp.step_name('going', 'c')],
  'a step that waits for nothing has started'
);
select pg_temp.finds(
  $$
    delete from pgflow.step_tasks where run_id = pg_temp.id('plain');
    delete from pgmq.q_plain;
  $$,
  array[
    'run_cannot_move: run ' || pg_temp.id('plain'),
    'initial_tasks: ' || pg_temp.step_name('plain', 'a'),
    'remaining_tasks: ' || pg_temp.step_name('plain', 'a')
  ],
  'a run in progress has something that can move it'
);

-- Times.
select pg_temp.finds(
  $$update pgflow.runs set completed_at = null where run_id = pg_temp.id('done')$$,
  array['time_of_status: run ' || pg_temp.id('done')],
  'a run that completed has its time'
);
select pg_temp.finds(
  $$update pgflow.runs set failed_at = clock_timestamp() where run_id = pg_temp.id('going')$$,
  array['time_of_status: run ' || pg_temp.id('going')],
  'a run that goes on has no end'
);
select pg_temp.finds(
  $$update pgflow.step_states set skipped_at = completed_at where run_id = pg_temp.id('done') and step_slug = 'c'$$,
  array['time_of_status: ' || pg_temp.step_name('done', 'c')],
  'a step has one end'
);
select pg_temp.finds(
  $$update pgflow.step_tasks set completed_at = null where run_id = pg_temp.id('done') and step_slug = 'c'$$,
  array['time_of_status: ' || pg_temp.task_name('done', 'c')],
  'a task that completed has its time'
);
select pg_temp.finds(
  $$update pgflow.step_tasks set started_at = clock_timestamp() where run_id = pg_temp.id('plain')$$,
  array['start_of_task: ' || pg_temp.task_name('plain', 'a')],
  'a queued task was not started'
);
select pg_temp.finds(
  $$update pgflow.step_tasks set status = 'started' where run_id = pg_temp.id('plain')$$,
  array['start_of_task: ' || pg_temp.task_name('plain', 'a')],
  'a started task was, and counts an attempt'
);
select pg_temp.finds(
  $$update pgflow.runs set started_at = completed_at + interval '1 second' where run_id = pg_temp.id('done')$$,
  array['time_order: run ' || pg_temp.id('done')],
  'a run starts before it ends'
);
select pg_temp.finds(
  $$
    update pgflow.step_states
    set created_at = started_at + interval '1 microsecond', completed_at = started_at + interval '1 second'
    where run_id = pg_temp.id('done') and step_slug = 'c'
  $$,
  array['time_order: ' || pg_temp.step_name('done', 'c')],
  'a step is created before it starts'
);
select pg_temp.finds(
  $$update pgflow.step_tasks set queued_at = started_at + interval '1 microsecond', completed_at = started_at + interval '1 second' where run_id = pg_temp.id('done') and step_slug = 'c'$$,
  array['time_order: ' || pg_temp.task_name('done', 'c')],
  'a task is queued before it starts'
);
select pg_temp.finds(
  $$update pgflow.step_tasks set completed_at = started_at - interval '1 microsecond', queued_at = started_at - interval '1 second' where run_id = pg_temp.id('done') and step_slug = 'c'$$,
  array['time_order: ' || pg_temp.task_name('done', 'c')],
  'and starts before it ends'
);

-- Queues.
select pg_temp.finds(
  $$update pgflow.queues set physical_created_at = physical_created_at - interval '1 second' where queue_name = 'plain'$$,
  array['route: flow "Plain"'],
  'a queue is the one that was made'
);
select pg_temp.finds(
  $$delete from pgmq.meta where queue_name = 'f__c'$$, array['route: flow "f"'], 'and is listed by PGMQ'
);
select pg_temp.finds(
  $$update pgflow.steps set queue_name = 'f__a' where step_slug = 'c'$$,
  array['route: flow "f"', 'route: flow "f"', 'queue_without_use: queue "f__c"'],
  'a route is the derived one, and an owned queue has a route'
);
select pg_temp.finds(
  $$insert into pgflow.queues (queue_name, flow_slug, physical_created_at) values ('lost', 'gone', now())$$,
  array['queue_without_use: queue "lost"'],
  'the owner of a queue is there'
);
select pg_temp.finds(
  $$insert into pgflow.queues (queue_name, flow_slug, physical_created_at) values ('plain_too', 'Plain', now())$$,
  array['queue_without_use: queue "plain_too"'],
  'a flow-mode flow has one queue'
);
select pg_temp.finds(
  $$
    alter table pgflow.step_tasks disable trigger queue_is_a_snapshot;
    update pgflow.step_tasks set queue_name = 'f__c', message_id = 100 where run_id = pg_temp.id('plain');
  $$,
  array[
    'task_on_foreign_queue: ' || pg_temp.task_name('plain', 'a'),
    'task_without_a_message: ' || pg_temp.task_name('plain', 'a'),
    'message_without_a_task: message 1 on queue "plain"',
    -- The queue has not given out such an id yet.
    'route: flow "f"'
  ],
  'the message of a task is on a queue of its flow'
);
select pg_temp.finds(
  $$drop table pgmq.q_plain$$,
  array['route: flow "Plain"', 'task_without_a_message: ' || pg_temp.task_name('plain', 'a')],
  'a queue that is gone is reported and breaks nothing'
);

-- One flow, or all.
select is_empty(
  $outer$select pg_temp.found_after($$delete from pgmq.q_plain$$, 'f')$outer$, 'faults of other flows are not those of one'
);
select results_eq(
  $outer$select pg_temp.found_after($$delete from pgmq.q_plain$$, 'Plain')$outer$,
  array['task_without_a_message: ' || pg_temp.task_name('plain', 'a')],
  'its own are'
);
select throws_ok(
  $$select * from pgflow.check_integrity('plain')$$, 'PF018', 'Flow "plain" is not known.', 'an unknown flow is refused'
);

-- It only reads.
create temporary table before_the_check as
select pg_temp.world() as world, pg_temp.picture('f') as picture;
select is_empty('select * from pgflow.check_integrity()', 'all faults above were undone');
select results_eq(
  $$select pg_temp.world(), pg_temp.picture('f')$$, 'select world, picture from before_the_check', 'and the check changes nothing'
);

select * from finish();
rollback;
