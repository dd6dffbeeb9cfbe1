begin;
\ir helpers.psql
select plan(27);

create function pg_temp.unfence(flow_slug text)
returns text
language sql
as $$
  select coalesce(
    string_agg(lifted.function_name || ' ' || lifted.enabled || coalesce(' (' || lifted.reason || ')', ''), ', '), 'none'
  )
  from pgflow.unfence_flow(unfence.flow_slug) as lifted
$$;

create function pg_temp.functions()
returns text
language sql
as $$
  select string_agg(known.function_name || ' ' || known.enabled || coalesce(' (' || known.disabled_reason || ')', ''), ', ' order by known.function_name)
  from pgflow.worker_functions as known
$$;

select pg_temp.step_flow('f', 'a', 'b');
select pg_temp.step_flow('g', 'a');
select pgflow.register_worker(pg_temp.id('f1'), 'good', 'f', 'a');
select pgflow.register_worker(pg_temp.id('f2'), 'broken', 'f', 'b');
select pgflow.register_worker(pg_temp.id('f3'), 'shared', 'f', 'b');
select pgflow.register_worker(pg_temp.id('g1'), 'shared', 'g', 'a');
select pgflow.disable_worker_function('broken', 'it spoils orders');
create temporary table at_first on commit drop as
select function_name, enabled, debounce, start_mode, disabled_at, disabled_reason from pgflow.worker_functions;

-- There and back.

select is(pg_temp.unfence('f'), 'none', 'where there is no fence, nothing is lifted');
select pgflow.fence_flow('f', 'deploy');
select is(pg_temp.unfence('f'), 'broken false (it spoils orders), good true, shared true', 'each function is as it was, and why not enabled');
select results_eq(
  'select function_name, enabled, debounce, start_mode, disabled_at, disabled_reason from pgflow.worker_functions order by 1',
  'select * from at_first order by 1',
  'exactly'
);
select is(pg_temp.unfence('f'), 'none', 'lifting it again does nothing');
select is((select count(*)::int from pgflow.fences where restored_at is not null), 3, 'what happened stays on record');
select lives_ok($$ select pgflow.register_worker(pg_temp.id('f4'), 'good', 'f', 'a') $$, 'new workers come');
select throws_ok(
  $$ select * from pgflow.poll_tasks(pg_temp.id('f1'), 1, 0) $$, 'PF013', null, 'those that were told to go do not come back'
);
select is_empty($$ select * from pgflow.fence_status('f') $$, 'the status is empty again');

-- Two flows fenced with one function: in either order of lifting it comes back once the last one is gone.

select pgflow.fence_flow('f', 'one');
select pgflow.fence_flow('g', 'two');
select results_eq(
  $$ select flow_slug, was_enabled from pgflow.fences where function_name = 'shared' and restored_at is null order by 1 $$,
  $$ values ('f', true), ('g', true) $$,
  'the second fence records what was before the first'
);
select is(
  pg_temp.unfence('f'), 'broken false (it spoils orders), good true, shared false (flow "g" is fenced with it: two)', 'the other fence holds it'
);
select is(pg_temp.unfence('g'), 'shared true', 'and then it comes back');
select pgflow.fence_flow('f', 'one');
select pgflow.fence_flow('g', 'two');
select is(pg_temp.unfence('g'), 'shared false (flow "f" is fenced with it: one)', 'the first fence can stay longest, too');
select pgflow.fence_flow('g', 'three');
select is(pg_temp.unfence('f'), 'broken false (it spoils orders), good true, shared false (flow "g" is fenced with it: three)', 'or come and go');
select is(pg_temp.unfence('g'), 'shared true', 'it is what it was before them all');
select results_eq(
  'select function_name, enabled, debounce, start_mode, disabled_at, disabled_reason from pgflow.worker_functions order by 1',
  'select * from at_first order by 1',
  'exactly, again'
);

-- Somebody else wants it disabled meanwhile.

select pgflow.fence_flow('f', 'deploy');
select pgflow.disable_worker_function('good', 'an operator says so');
select is(
  pg_temp.unfence('f'), 'broken false (it spoils orders), good false (an operator says so), shared true', 'a later disable holds'
);
select is(
  pg_temp.functions(), 'broken false (it spoils orders), good false (an operator says so), shared true', 'with its own reason'
);
select lives_ok($$ select pgflow.enable_worker_function('good') $$, 'and ends by its own call');

-- A disable under two fences outlives both.
select pgflow.fence_flow('g', 'one');
select pgflow.disable_worker_function('shared', 'an operator says so');
select pgflow.fence_flow('f', 'two');
select is(pg_temp.unfence('g'), 'shared false (an operator says so)', 'a disable between two fences holds after the first');
select is(
  pg_temp.unfence('f'), 'broken false (it spoils orders), good true, shared false (an operator says so)', 'and after the second'
);
select pgflow.enable_worker_function('shared');

-- What was disabled, enabled by hand and fenced again ends as it was recorded.
select pgflow.fence_flow('f', 'deploy');
update pgflow.worker_functions set enabled = true, disabled_at = null, disabled_reason = null where function_name in ('broken', 'good');
select is(pg_temp.unfence('f'), 'broken true, good true, shared true', 'what somebody enabled by hand is left to him');
select pgflow.disable_worker_function('broken', 'it spoils orders');
select pgflow.fence_flow('f', 'deploy');
update pgflow.worker_functions set enabled = true, disabled_at = null, disabled_reason = null where function_name = 'broken';
select pgflow.fence_flow('f', 'deploy');
select is(
  pg_temp.unfence('f'), 'broken false (it was disabled before flow "f" was fenced), good true, shared true', 'unless it is fenced again'
);

-- The flow changes or goes away behind its fence.

select pgflow.fence_flow('f', 'new shape');
select pgflow.ensure_flow_compiled('f', '{"steps": [{"slug": "c"}]}', true, 'step');
select throws_ok(
  $$ select pgflow.register_worker(pg_temp.id('f5'), 'good', 'f', 'c') $$, 'PF012', 'Flow "f" is fenced: new shape', 'the fence outlives a recompilation'
);
select pgflow.delete_flow_and_data('f');
delete from pgflow.worker_functions where function_name = 'good';
select is(
  pg_temp.unfence('f'), 'broken false (it was disabled before flow "f" was fenced), good false (the function is no longer known), shared true', 'it can be lifted when the flow is gone, and a function too'
);
select is(pg_temp.unfence('f'), 'none', 'twice');
select throws_ok($$ select * from pgflow.unfence_flow('nope') $$, 'PF018', 'Flow "nope" is not known.', 'a slug that never was is refused');
select is((select count(*)::int from pgflow.fences where restored_at is null), 0, 'no fence is left');

select * from finish();
rollback;
