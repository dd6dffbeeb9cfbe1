begin;
\ir helpers.psql
select plan(26);

-- No steps come first, whatever else is wrong.

select throws_ok(
  format('select * from pgflow.resolve_step_queues(%L, %L)', flow_slug, steps),
  'PF006',
  null,
  format('no steps: flow %s, steps %s', coalesce(quote_literal(flow_slug), 'null'), coalesce(steps, 'null'))
)
from (
  values
  ('f', '{}'), ('f', null), (null, null), ('bad slug', '{}'), (repeat('f', 45), '{}')
) as given (flow_slug, steps);

-- Then slugs.

select throws_ok(
  format('select * from pgflow.resolve_step_queues(%L, %L)', flow_slug, '{s}'),
  'PF008', null, 'bad flow slug: ' || coalesce(to_json(flow_slug)::text, 'null')
)
from unnest(
  array[
    null, '', 'run', '1st', 'with space', 'semi;colon', 'quo''te', 'dou"ble', 'per%I', 'back\slash', e'line\n',
    'trailing ', 'ümlaut', 'hy-phen', repeat('f', 129)
  ]
) as flow_slug;
select results_eq(
  $outer$
    select sqlstate, message, detail
    from pg_temp.refusal($$ select * from pgflow.resolve_step_queues('f', array['ok', e'bad\n', null]) $$)
  $outer$,
  $$ values ('PF008', 'Step slug "bad\n" at index 1 in flow "f" is not valid.', 'It has 4 characters.') $$,
  'the first bad step slug is named with its index'
);
select throws_ok(
  $$ select * from pgflow.resolve_step_queues('f', array['ok', null]) $$,
  'PF008', 'Step slug null at index 1 in flow "f" is not valid.', 'a null step slug is a bad one'
);
select throws_ok(
  $$ select * from pgflow.resolve_step_queues(repeat('f', 45), array['a', 'A', '']) $$,
  'PF008', null, 'a bad slug is found before twins and before the lengths'
);
select throws_ok(
  $$ select * from pgflow.resolve_step_queues('bad slug', array['', 'a']) $$,
  'PF008', 'Flow slug "bad slug" is not valid.', 'the flow slug is looked at before the steps'
);
select throws_ok(
  $$ select pgflow.ensure_flow_compiled('f', '{"steps": []}', false, 'step') $$,
  'PF006', 'Flow "f" has no steps, so it cannot use per-step queues.', 'a step-mode flow without steps is not compiled'
);
select is((select count(*) from pgflow.flows), 0::bigint, 'and nothing of it is left');

select * from finish();
rollback;
