begin;
\ir helpers.psql
select plan(7);

select pg_temp.compile(
  'f', 'step', jsonb_build_array(pg_temp.step('a'), pg_temp.step('b'), pg_temp.step('c', 'a,b', '{"options": {"maxAttempts": 1, "baseDelay": 0}}'))
);
select pg_temp.start('f', 'large'), pg_temp.start('f', 'small');
select pg_temp.claim('f', 'a', 2), pg_temp.claim('f', 'b', 2);

select pgflow.complete_task(pg_temp.id(run.name), step.slug, 0, '1')
from unnest(array['large', 'small']) as run (name)
cross join unnest(array['a', 'b']) as step (slug);

-- Two strings of 140 MB: PostgreSQL can hold either, and 256 MB of JSON at most. Written by hand, since finishing with
-- them takes long.
update pgflow.step_states set output = to_jsonb(repeat('x', 140000000)) where run_id = pg_temp.id('large') and step_slug in ('a', 'b');

create temporary table claimed on commit drop as select * from pg_temp.claim('f', 'c', 2);
select results_eq(
  $$ select run_id = pg_temp.id('small'), outcome, attempt, input, reason from claimed where run_id = pg_temp.id('small') $$,
  $$ values (true, 'claimed', 1, '{"a": 1, "b": 1}'::jsonb, null::text) $$,
  'the other task of the batch is claimed as ever'
);
select results_eq(
  $$ select outcome, attempt, input, reason from claimed where run_id = pg_temp.id('large') $$,
  $$ values ('claimed', 1, null::jsonb, 'its input can''t be built: total size of jsonb object elements exceeds the maximum of 268435455 bytes') $$,
  'the one whose input can''t be built is claimed without one, and says why'
);
select is(
  (select status from pgflow.complete_tasks(
    jsonb_build_array(jsonb_build_object('run_id', pg_temp.id('small'), 'step_slug', 'c', 'task_index', 0, 'attempt', 1, 'output', 2))
  )),
  'completed', 'the other run goes on'
);
select is(
  (select status from pgflow.fail_task(pg_temp.id('large'), 'c', 0, (select reason from claimed where run_id = pg_temp.id('large')))), 'failed',
  'it fails by the normal path'
);
select is(pg_temp.run('large'), 'failed, 1 left', 'with its run');
select is(pg_temp.run('small'), 'completed, 0 left', 'the other run is complete');

select is_empty('select * from pgflow.check_integrity()', 'everything is sound');

select * from finish();
rollback;
