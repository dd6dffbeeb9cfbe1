begin;
\ir helpers.psql
select plan(38);

create function pg_temp.fence(flow_slug text, reason text default 'deploy')
returns text
language sql
as $$
  select coalesce(string_agg(fence.function_name || ' ' || fence.was_enabled, ', '), 'none')
  from pgflow.fence_flow(fence.flow_slug, fence.reason) as fence
$$;

select pg_temp.step_flow('f', 'a', 'b');
select pg_temp.step_flow('g', 'a');
select pgflow.register_worker(pg_temp.id('a1'), 'fa', 'f', 'a');
select pgflow.register_worker(pg_temp.id('a2'), 'fa', 'f', 'a');
select pgflow.register_worker(pg_temp.id('b1'), 'fb', 'f', 'b');
select pgflow.register_worker(pg_temp.id('gone'), 'long_gone', 'f', 'b');
select pgflow.register_worker(pg_temp.id('g1'), 'ga', 'g', 'a');
select pgflow.mark_worker_stopped(pg_temp.id('gone'));
select pgflow.disable_worker_function('fb', 'it spoils orders');
select pg_temp.start('f', 'r');
select pg_temp.start('g', 'other');

create temporary table in_hand on commit drop as
select * from pgflow.poll_tasks(pg_temp.id('a1'), 1, 0);

-- The fence.

select is(pg_temp.fence('f'), 'fa true, fb false, long_gone true', 'every function of any worker row is fenced, live or not');
select results_eq(
  $$ select function_name, enabled, disabled_reason from pgflow.worker_functions order by function_name $$,
  $$
    values
    ('fa', false, 'fenced with flow "f": deploy'),
    ('fb', false, 'it spoils orders'),
    ('ga', true, null),
    ('long_gone', false, 'fenced with flow "f": deploy')
  $$,
  'they are disabled; a reason from before stands, and other flows'' functions are left alone'
);
select results_eq(
  $$
    select worker.function_name, worker.deprecated_at is not null, worker.stopped_at is not null
    from pgflow.workers as worker
    order by worker.function_name, worker.worker_id
  $$,
  $$ values ('fa', true, false), ('fa', true, false), ('fb', true, false), ('ga', false, false), ('long_gone', false, true) $$,
  'their workers are deprecated, unless they stopped before'
);

-- What workers see of it.

select results_eq(
  $$ select should_stop, reason from pgflow.heartbeat(pg_temp.id('a1')) $$,
  $$ values (true, 'flow "f" is fenced: deploy') $$,
  'a worker hears of it by its heartbeat'
);
select throws_ok(
  $$ select * from pgflow.poll_tasks(pg_temp.id('a2'), 1, 0) $$,
  'PF012',
  format('Worker %s can''t claim tasks: flow "f" is fenced: deploy', pg_temp.id('a2')),
  'and gets nothing before that'
);
select throws_ok(
  $$
    select *
    from pgflow.claim_tasks('f__b', 'f', 'b', array(select msg_id from pg_temp.messages('f')), pg_temp.id('b1'))
  $$,
  'PF012',
  null,
  'by claim_tasks() neither'
);
select is(
  (select status from pgflow.complete_task((select run_id from in_hand), 'a', 0, '1')), 'completed', 'what it has in hand it can finish'
);
select results_eq(
  $$ select * from pg_temp.refusal($q$ select pgflow.register_worker(pg_temp.id('a3'), 'fa', 'f', 'a') $q$) $$,
  format(
    $q$
      values (
        'PF012',
        'Flow "f" is fenced: deploy',
        'Fenced at %s. Worker %s of function "fa" was not registered.',
        'When the cause is removed: select * from pgflow.unfence_flow(''f'');'
      )
    $q$,
    (select min(fenced_at) from pgflow.fences),
    pg_temp.id('a3')
  ),
  'no worker can register'
);
select throws_ok(
  $$ select pgflow.register_worker(pg_temp.id('a3'), 'brand_new', 'f', 'a') $$,
  'PF012',
  'Flow "f" is fenced: deploy',
  'nor one of a function that nobody knew'
);
select is_empty(
  $$ select from pgflow.worker_functions where function_name = 'brand_new' $$, 'which leaves no row'
);
select is(
  (select count(*)::int from pgflow.poll_tasks(pg_temp.id('g1'), 1, 0) where outcome = 'claimed'), 1, 'workers of another flow go on'
);

-- Nothing starts them.

update pgflow.worker_functions set start_mode = 'http';
select pgflow.mark_worker_stopped(worker_id) from pgflow.workers;
select results_eq(
  $$ select function_name from pgflow.ensure_workers() $$, $$ values ('ga') $$, 'ensure_workers() leaves what is fenced alone'
);
select results_eq(
  $$ select * from pg_temp.refusal($q$ select pgflow.enable_worker_function('fa') $q$) $$,
  format(
    $q$
      values (
        'PF012',
        'Worker function "fa" is fenced with flow "f".',
        'Since %s: deploy',
        'Lift the fence: select * from pgflow.unfence_flow(''f''). It restores what was enabled before.'
      )
    $q$,
    (select min(fenced_at) from pgflow.fences)
  ),
  'a fenced function can''t be enabled behind the fence''s back'
);

-- Again.

create temporary table before_again on commit drop as select * from pgflow.fences;
select is(pg_temp.fence('f', 'again'), 'fa true, fb false, long_gone true', 'fencing again returns the first record');
select results_eq(
  'select * from pgflow.fences order by function_name', 'select * from before_again order by function_name', 'and changes nothing'
);
select pg_temp.old_worker('late', 'f__a', 'late');
update pgflow.worker_functions set enabled = true where function_name = 'fa';
select is(pg_temp.fence('f', 'again'), 'fa true, fb false, late true, long_gone true', 'but takes in what came meanwhile');
select results_eq(
  $$ select function_name, enabled, start_mode, disabled_reason from pgflow.worker_functions where function_name in ('fa', 'late') order by 1 $$,
  $$
    values
    ('fa', false, 'http', 'fenced with flow "f": deploy'),
    ('late', false, 'process', 'fenced with flow "f": again')
  $$,
  'and disables anew what somebody enabled by hand'
);

-- Whether they have drained.

select pg_temp.step_flow('d', 'a');
select pgflow.register_worker(pg_temp.id('d1'), 'da', 'd', 'a');
select pg_temp.start('d', 'dr');
select is_empty($$ select * from pgflow.fence_status('d') $$, 'without a fence there is no status');
select from pgflow.poll_tasks(pg_temp.id('d1'), 1, 0);
select is(pg_temp.fence('d', 'drain'), 'da true', 'fenced with a task in hand');
select results_eq(
  $$
    select function_name, was_enabled, reason, live_workers::int, started_tasks::int, is_drained
    from pgflow.fence_status('d')
  $$,
  $$ values ('da', true, 'drain', 1, 1, false) $$,
  'a worker that is heard of and has a task has not drained'
);
select pg_temp.silence('d1');
select results_eq(
  $$ select live_workers::int, started_tasks::int, is_drained from pgflow.fence_status('d') $$,
  $$ values (0, 1, false) $$,
  'one that has gone silent with a task in hand neither'
);
select ok(
  (select last_heartbeat_at < clock_timestamp() - interval '50 minutes' from pgflow.fence_status('d')), 'it shows when they were last heard of'
);
select from pgflow.complete_task(pg_temp.id('dr'), 'a', 0, '1');
select results_eq(
  $$ select live_workers::int, started_tasks::int, is_drained from pgflow.fence_status('d') $$,
  $$ values (0, 0, true) $$,
  'silent and without a task it has'
);
select pgflow.heartbeat(pg_temp.id('d1'));
select results_eq(
  $$ select live_workers::int, is_drained from pgflow.fence_status('d') $$, $$ values (1, false) $$, 'until it is heard of again'
);
select pgflow.mark_worker_stopped(pg_temp.id('d1'));
select results_eq(
  $$ select live_workers::int, is_drained from pgflow.fence_status('d') $$, $$ values (0, true) $$, 'a worker that stopped has drained'
);

-- Workers of pgflow 0.14.

select pg_temp.plain_flow('Plain', 'a');
select pg_temp.old_worker('old', 'Plain', 'old');
select pgflow.track_worker_function('old');
select pg_temp.start('Plain', 'p');
select is(pg_temp.fence('Plain'), 'old true', 'a worker that wrote its row itself is known by its queue');
select is_empty(
  $$ select * from pgflow.start_tasks('Plain', array(select msg_id from pg_temp.messages('Plain')), pg_temp.id('old')) $$,
  'it gets no task'
);
select pg_temp.old_worker('older', 'plain', 'older');
select is_empty(
  $$ select * from pgflow.start_tasks('Plain', array(select msg_id from pg_temp.messages('Plain')), pg_temp.id('older')) $$,
  'nor does one of another function that came after the fence'
);
select is((select should_stop from pgflow.heartbeat(pg_temp.id('old'))), true, 'and is told to stop');
select is(pg_temp.tasks('p', 'a'), 'queued', 'the task waits');
select pg_temp.step_flow('h', 'a');
select pg_temp.plain_flow('Single', 'a');
select pg_temp.start('Single', 's');
select is_empty(
  $$ select * from pgflow.start_tasks('Single', array(select msg_id from pg_temp.messages('Single')), pg_temp.id('old')) $$,
  'a disabled function gets no task of other flows either'
);

-- A flow that nobody ever worked on, and refusals.

select is(pg_temp.fence('h'), 'none', 'without any worker there is nothing to fence');
select throws_ok($$ select pgflow.fence_flow('F', 'deploy') $$, 'PF018', 'Flow "F" is not known.', 'slugs are case-sensitive');
select throws_ok($$ select pgflow.fence_flow(null, 'deploy') $$, 'PF018', null, 'a null slug is unknown');
select throws_ok($$ select pgflow.fence_flow('f', ' ') $$, 'PF019', 'Flow "f" can''t be fenced without a reason.', 'a reason is asked for');
select throws_ok($$ select * from pgflow.fence_status('nope') $$, 'PF018', 'Flow "nope" is not known.', 'an unknown flow has no status');

select matches(
  (select reason from pgflow.coverage_gaps('Plain')), '^1 messages wait .*; the flow is fenced: deploy$', 'waiting work says why it waits'
);
select is_empty('select * from pgflow.check_integrity()', 'a fence breaks no rule');

select * from finish();
rollback;
