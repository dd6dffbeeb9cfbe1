begin;
\ir ../helpers.psql
select plan(39);

-- Whatever is sent about a change would be recorded here.
create schema realtime;
create table realtime.sent (number bigint generated always as identity, payload jsonb, event text, topic text, private boolean);
create function realtime.send(payload jsonb, event text, topic text, private boolean)
returns void
language sql
as $$
  insert into realtime.sent (payload, event, topic, private) values (payload, event, topic, private)
$$;

-- The state of a flow with all that was ever sent.
create function pg_temp.everything(flow_slug text)
returns text
language sql
as $$
  select pg_temp.picture(flow_slug) || ' and ' || (select count(*) from realtime.sent)
$$;

-- Every call that can come late about a task; gives the answers.
create function pg_temp.call_late(run_name text, step_slug text, task_index int default 0)
returns text
language plpgsql
as $$
declare
  answers text;
  result jsonb := jsonb_build_array(
    jsonb_build_object('run_id', pg_temp.id(run_name), 'step_slug', step_slug, 'task_index', task_index, 'output', '["late"]'::jsonb, 'error_message', 'late')
  );
begin
  select concat_ws(
    ' ',
    (select status from pgflow.complete_task(pg_temp.id(run_name), call_late.step_slug, call_late.task_index, '["late"]')),
    (select status from pgflow.fail_task(pg_temp.id(run_name), call_late.step_slug, call_late.task_index, 'late')),
    (select status from pgflow.complete_tasks(result)),
    (select status from pgflow.fail_tasks(result))
  )
  into answers;

  return answers;
end
$$;

select pg_temp.compile(
  'late', 'step',
  jsonb_build_array(
    pg_temp.map('m', '', pg_temp.options(max_attempts => 1) || '{"whenExhausted": "skip"}'),
    pg_temp.step('breaks', '', pg_temp.options(max_attempts => 1)),
    pg_temp.step('a', '', pg_temp.options(base_delay => 0)),
    pg_temp.map('b', 'a')
  )
);

-- After a completion.

select pg_temp.start('late', 'r', '[1, 2, 3]');
select pg_temp.work('late', 'a', '["in time", 2]');
select pg_temp.everything('late') as before \gset
select is(pg_temp.call_late('r', 'a'), 'completed completed ended ended', 'a completed task stays completed');
select is(pg_temp.everything('late'), :'before', 'a second completion and a failure after it change nothing and send nothing');
select is(
  (select output from pgflow.step_tasks where (run_id, step_slug) = (pg_temp.id('r'), 'a')), '["in time", 2]', 'the first output stays'
);
select is(pg_temp.tasks('r', 'b'), 'queued, queued', 'dependents were released once');
select is(pg_temp.run('r'), 'started, 3 left', 'the step was counted once');

-- After one of several tasks of a step completed.

select count(*) from pg_temp.claim('late', 'b', 1);
select is((select status from pgflow.complete_task(pg_temp.id('r'), 'b', 0, '1')), 'completed', 'one task of a map completes');
select pg_temp.everything('late') as before \gset
select is(pg_temp.call_late('r', 'b'), 'completed completed ended ended', 'it stays so');
select is(pg_temp.everything('late'), :'before', 'and its step counts it once');
select is(
  (select remaining_tasks from pgflow.step_states where (run_id, step_slug) = (pg_temp.id('r'), 'b')), 1, 'one task of the map remains'
);

-- After a failure that is to be retried.

select pg_temp.start('late', 'again', '[]');
select pg_temp.spoil('late', 'a', 'in time');
select pg_temp.everything('late') as before \gset
select is(pg_temp.call_late('again', 'a'), 'queued queued superseded superseded', 'a task that waits for its retry waits on');
select is(pg_temp.everything('late'), :'before', 'late results of the failed attempt change nothing: no second delay, no attempt, no completion');
select is(
  (select error_message from pgflow.step_tasks where (run_id, step_slug) = (pg_temp.id('again'), 'a')), 'in time', 'the first error stays'
);
select is((select (pg_temp.take('late', 'a')).attempt), 2, 'it can be claimed');
select is((select status from pgflow.complete_task(pg_temp.id('again'), 'a', 0, '[]')), 'completed', 'and completed');

-- Before it ever started.

select pg_temp.start('late', 'early', '[1]');
select pg_temp.everything('late') as before \gset
select is(pg_temp.call_late('early', 'a'), 'queued queued superseded superseded', 'a task that nobody claimed can neither complete nor fail');
select is(pg_temp.everything('late'), :'before', 'nothing of it changes');

-- After the step was skipped: a failed, a started and a queued task.

select pg_temp.start('late', 's', '[1, 2, 3]');
select pg_temp.pass_time('late');
create temporary table claimed as select * from pg_temp.claim('late', 'm', 100);
select is(
  (select count(*) from claimed where run_id = pg_temp.id('s')), 3::bigint, 'three tasks of a map are started'
);
select is((select status from pgflow.fail_task(pg_temp.id('s'), 'm', 1, 'x')), 'failed', 'one of them exhausts its attempts');
select pg_temp.everything('late') as before \gset
select is(pg_temp.call_late('s', 'm', 0), 'skipped skipped ended ended', 'a started task of a skipped step is skipped and stays so');
select is(pg_temp.call_late('s', 'm', 1), 'failed failed ended ended', 'the task that failed stays failed');
select is(pg_temp.call_late('s', 'm', 2), 'skipped skipped ended ended', 'and the third one is skipped too');
select is(pg_temp.everything('late'), :'before', 'rows, counters, events, messages and archives stay as they were');

-- After the run failed.

select pg_temp.start('late', 'f', '[1]');
select count(*) from pg_temp.claim('late', 'a', 100);
select count(*) from pg_temp.claim('late', 'breaks', 100);
select is((select status from pgflow.fail_task(pg_temp.id('f'), 'breaks', 0, 'x')), 'failed', 'a run fails');
select pg_temp.everything('late') as before \gset
select is(pg_temp.call_late('f', 'a'), 'cancelled cancelled ended ended', 'a started task of a failed run is cancelled and stays so');
select is(pg_temp.call_late('f', 'breaks'), 'failed failed ended ended', 'the task that failed stays failed');
select is(pg_temp.call_late('f', 'm'), 'cancelled cancelled ended ended', 'so does a task that nobody had claimed');
select is(pg_temp.everything('late'), :'before', 'rows, counters, events, messages and archives stay as they were');

-- After the run completed.

select pg_temp.compile('short', 'flow', jsonb_build_array(pg_temp.step('only')));
select pg_temp.start('short', 'c');
select pg_temp.work('short', null, '"in time"');
select pg_temp.everything('short') as before \gset
select is(pg_temp.call_late('c', 'only'), 'completed completed ended ended', 'a task of a completed run stays completed');
select is(pg_temp.everything('short'), :'before', 'nothing of the run changes');
select is(pg_temp.output('c'), '{"only": "in time"}', 'nor does its output');

-- A message that came back to the queue of an ended task leaves it with the next late call.

insert into pgmq.q_short (msg_id, vt, message, read_ct)
overriding system value
select msg_id, clock_timestamp(), message, 7
from pgmq.a_short;
select is((select count(*) from pg_temp.messages('short')), 1::bigint, 'a message of an ended task is on the queue again');
select is(pg_temp.call_late('c', 'only'), 'completed completed ended ended', 'a late call about it changes no task');
select pg_temp.nothing_left('short', 'but takes the message away');
select results_eq($$ select count(*), max(read_ct) from pgmq.a_short $$, $$ values (1::bigint, 7) $$, 'and it is archived once, as it was last');

-- Nobody's task.

select pg_temp.everything('late') as before \gset
select is_empty(
  $$
    select * from pgflow.complete_task(pg_temp.id('nobody'), 'a', 0, '1')
    union all
    select * from pgflow.complete_task(pg_temp.id('r'), 'A', 0, '1')
    union all
    select * from pgflow.complete_task(pg_temp.id('r'), 'a', 1, '1')
    union all
    select * from pgflow.complete_task(pg_temp.id('r'), 'a', -1, '1')
    union all
    select * from pgflow.complete_task(null, null, null, null)
    union all
    select * from pgflow.fail_task(pg_temp.id('nobody'), 'a', 0, 'x')
    union all
    select * from pgflow.fail_task(null, null, null, null)
  $$,
  'a task that is not known gives no row'
);
select is(pg_temp.everything('late'), :'before', 'and changes nothing');

-- Two results for a task that was started twice: the fencing token tells them apart.

select pg_temp.start('short', 'twice');
select pg_temp.spoil('short', null, 'first attempt');
select pg_temp.pass_time('short');
select is((select (pg_temp.take('short')).attempt), 2, 'a task is in its second attempt');
select is(
  (
    select array_agg(status)
    from (
      select status
      from pgflow.fail_tasks(
        jsonb_build_array(jsonb_build_object('run_id', pg_temp.id('twice'), 'step_slug', 'only', 'task_index', 0, 'attempt', 1, 'error_message', 'old'))
      )
      union all
      select status
      from pgflow.complete_tasks(
        jsonb_build_array(jsonb_build_object('run_id', pg_temp.id('twice'), 'step_slug', 'only', 'task_index', 0, 'attempt', 1, 'output', 'old'::text))
      )
    ) as answer
  ),
  array['superseded', 'superseded'],
  'results of the first one are superseded'
);
select is(
  (
    select status
    from pgflow.complete_tasks(
      jsonb_build_array(jsonb_build_object('run_id', pg_temp.id('twice'), 'step_slug', 'only', 'task_index', 0, 'attempt', 2, 'output', 'new'::text))
    )
  ),
  'completed',
  'the second one counts'
);

select * from finish();
rollback;
