begin;
\ir ../helpers.psql
select plan(11);

select pg_temp.compile('f', 'step', jsonb_build_array(pg_temp.step('z'), pg_temp.step('a', 'z'), pg_temp.map('m')));
select pg_temp.compile('nothing', 'flow', '[]');

create temporary table answer as
select pgflow.start_flow_with_states('f', '[1, 2]', pg_temp.id('r')) as answer;

select is(
  (select array_agg(key order by key) from answer cross join lateral jsonb_object_keys(answer) as key), array['run', 'steps'],
  'start_flow_with_states returns a run and its steps'
);
select is(
  (select answer -> 'run' from answer), (select to_jsonb(run) from pgflow.runs as run where run_id = pg_temp.id('r')), 'the run is its row'
);
select is(
  (select answer -> 'steps' from answer),
  (
    select jsonb_agg(to_jsonb(state) order by step.step_index)
    from pgflow.step_states as state
    inner join pgflow.steps as step using (flow_slug, step_slug)
    where state.run_id = pg_temp.id('r')
  ),
  'the steps are their rows in order'
);
select is(
  (select jsonb_path_query_array(answer, '$.steps[*].status') from answer), '["started", "created", "started"]', 'as they stand after the start'
);
select is(
  (select pgflow.get_run_with_states(pg_temp.id('r'))), (select answer from answer), 'get_run_with_states returns the same'
);
select pg_temp.work('f', 'z', '"done"');
select is(
  (select jsonb_path_query_array(pgflow.get_run_with_states(pg_temp.id('r')), '$.steps[*].status')), '["completed", "started", "started"]',
  'at each moment'
);
select is((pgflow.get_run_with_states(pg_temp.id('nobody'))), null, 'an unknown run is null');
select is((pgflow.get_run_with_states(null)), null, 'and so is none');
select is(
  (pgflow.start_flow_with_states('nothing', '{}') #> '{steps}'), '[]', 'a flow without steps has an empty list'
);
select throws_ok(
  $$ select pgflow.start_flow_with_states('missing', '{}') $$, 'PF018', 'Flow "missing" is not known.', 'an unknown flow is refused'
);
select throws_ok(
  $$ select pgflow.start_flow_with_states('f', '{}') $$, 'PF019', 'Flow f has root map steps but input is not an array (got object)',
  'so is an input that its root maps can''t take'
);

select * from finish();
rollback;
