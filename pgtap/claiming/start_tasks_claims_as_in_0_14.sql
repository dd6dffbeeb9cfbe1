-- The call of pgflow 0.14's workers, who read by themselves and know no outcomes: ids that can't be claimed are
-- ignored, and nothing is fatal.
begin;
\ir helpers.psql

select plan(26);

select is(
  pg_get_function_identity_arguments('pgflow.start_tasks'::regproc)
  || ' -> '
  || pg_get_function_result('pgflow.start_tasks'::regproc),
  'flow_slug text, msg_ids bigint[], worker_id uuid -> SETOF pgflow.step_task_record',
  'the signature is 0.14''s'
);

select pg_temp.compile('g', 'flow', jsonb_build_array(pg_temp.map('a'), pg_temp.step('b')));
select pg_temp.compile('other', 'flow', jsonb_build_array(pg_temp.step('a')));

-- A worker of 0.14 writes its own row.
insert into pgflow.workers (queue_name, worker_id, function_name)
values ('g', pg_temp.id('old'), 'old_fn');
select pg_temp.start('g', 'r', '["good", "done", "started", "lost", "last"]');
select pg_temp.start('other', 's');

select is((pg_temp.task('r', 'b')).message_id, 6::bigint, 'five tasks of the map, then one of the other step');
select pgflow.start_tasks('g', array[2, 3], pg_temp.id('old'));
select pgflow.complete_task(pg_temp.id('r'), 'a', 1, '1');
select pg_temp.put_back('g', 2);
update pgmq.q_g
set vt = clock_timestamp()
where msg_id = 3;
select pg_temp.lose_message('g', 4);
select is(pgmq.send('g', '{"junk": true}'), 7::bigint, 'somebody sends junk');
-- An id that only another flow's queue has.
alter table pgmq.q_other alter column msg_id restart with 5001;
select pg_temp.start('other', 't');

create temporary table received as
select *
from pgflow.start_tasks(
  'g', array[1, 7, 5001, 2, 3, 4, null, 1, 999, -1]::bigint[], pg_temp.id('old')
);

select results_eq(
  'select flow_slug, run_id, step_slug, input, msg_id, task_index, flow_input from received',
  $$values ('g', pg_temp.id('r'), 'a', '"good"'::jsonb, 1::bigint, 0, null::jsonb)$$,
  'of a mixed batch only the task that can be claimed is started, once'
);
select is(
  pg_temp.attempts('r', 'a'), 'started 1, completed 1, started 1, queued 0, queued 0',
  'with one attempt, and no other task changed'
);
select is(
  pg_temp.vt('g', 1), (pg_temp.task('r', 'a', 0)).started_at + interval '90 s',
  'its message is hidden until its boundary'
);
select is((pg_temp.task('r', 'a', 0)).last_worker_id, pg_temp.id('old'), 'the worker is recorded');
select is(pg_temp.whereabouts('g', 7), 'visible', 'junk stays where it is');
select is(pg_temp.whereabouts('g', 3), 'visible', 'a started task''s message, too');
select is(pg_temp.whereabouts('g', 2), 'visible and archived', 'and a completed task''s');
select is(pg_temp.attempts('t', 'a'), 'queued 0', 'another flow''s task with that id is not touched');
select is(
  (
    select count(*)
    from pgflow.worker_functions
    where not enabled
  ),
  0::bigint, 'nothing is disabled'
);
select is(
  (
    select stop_reason
    from pgflow.workers
    where worker_id = pg_temp.id('old')
  ),
  null,
  'nobody is told to stop'
);

select is_empty($$select * from pgflow.start_tasks('g', null, pg_temp.id('old'))$$, 'null ids give no rows');
select is_empty($$select * from pgflow.start_tasks('g', '{}', pg_temp.id('old'))$$, 'no ids give no rows');
select is_empty(
  $$select * from pgflow.start_tasks('nowhere', array[1], pg_temp.id('old'))$$,
  'an unknown flow gives no rows'
);
select is_empty($$select * from pgflow.start_tasks('G', array[5], pg_temp.id('old'))$$, 'nor does one in another case');

-- A map's elements come in order of their messages.
select results_eq(
  $$select step_slug, task_index, input, flow_input from pgflow.start_tasks('g', array[6, 5], pg_temp.worker('g'))$$,
  $$
    values
    ('a', 4, '"last"'::jsonb, null::jsonb),
    ('b', 0, '{}', '["good", "done", "started", "lost", "last"]')
  $$,
  'a registered worker may use it, too; rows come in the order of messages'
);

-- Told to stop.
select pg_temp.start('g', 'late', '["x"]');
update pgflow.workers
set stop_reason = 'a new definition was compiled'
where worker_id = pg_temp.id('old');
select is_empty(
  $$select * from pgflow.start_tasks('g', array[pg_temp.msg('late', 'a')], pg_temp.id('old'))$$,
  'a worker that was told to stop gets no rows'
);
select is(pg_temp.attempts('late', 'a'), 'queued 0', 'and starts nothing');
select is(pg_temp.whereabouts('g', pg_temp.msg('late', 'a')), 'visible', 'nor hides a message');
select results_eq(
  $$select input from pgflow.start_tasks('g', array[pg_temp.msg('late', 'a')], pg_temp.worker('g'))$$,
  array['"x"'::jsonb],
  'another worker does'
);

-- A deleted flow.
select pgflow.delete_flow_and_data('g');
select is_empty(
  $$select * from pgflow.start_tasks('g', array[1], pg_temp.worker('g'))$$, 'the flow is gone: no rows'
);

-- A step-mode flow has no queue of its own to claim from.
select pg_temp.compile('f', 'step', jsonb_build_array(pg_temp.step('a')));
select throws_ok(
  $$select * from pgflow.start_tasks('f', array[1], pg_temp.worker('f', 'a'))$$, 'PF010', null,
  'a step-mode flow is refused'
);
select throws_ok(
  $$select * from pgflow.start_tasks('f', null, null)$$, 'PF010', null, 'whatever else is passed'
);
do $$
declare
  hint text;
begin
  perform pgflow.start_tasks('f', array[1], pg_temp.worker('f', 'a'));
exception
  when sqlstate 'PF010' then
    get stacked diagnostics hint = pg_exception_hint;
    create temporary table hints as
    select hint;
end
$$;
select matches((select hint from hints), 'poll_tasks|claim_tasks', 'with a hint that names the way to claim');

select *
from finish();
rollback;
