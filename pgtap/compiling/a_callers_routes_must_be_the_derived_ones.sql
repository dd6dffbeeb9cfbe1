begin;
\ir helpers.psql
select plan(25);

create temporary table given (routes jsonb, what text) on commit drop;
insert into given values
('[{"step_slug": "a", "queue_name": "f__a"}]', 'a map that is too short'),
(
  '[
    {"step_slug": "a", "queue_name": "f__a"},
    {"step_slug": "B", "queue_name": "f__b"},
    {"step_slug": "c", "queue_name": "f__c"}
  ]',
  'a map that is too long'
),
('[{"step_slug": "B", "queue_name": "f__b"}, {"step_slug": "a", "queue_name": "f__a"}]', 'a map in another order'),
('[{"step_slug": "a", "queue_name": "f__b"}, {"step_slug": "B", "queue_name": "f__a"}]', 'a map with swapped queues'),
('[{"step_slug": "a", "queue_name": "f__a"}, {"step_slug": "B", "queue_name": "f__1"}]', 'a wrong queue'),
('[{"step_slug": "a", "queue_name": "f__a"}, {"step_slug": "B", "queue_name": "f__B"}]', 'a queue in the wrong case'),
('[{"step_slug": "a", "queue_name": "f__a"}, {"step_slug": "b", "queue_name": "f__b"}]', 'a step in the wrong case'),
('[{"step_slug": "a", "queue_name": "f__a"}, {"step_slug": "B", "queue_name": null}]', 'a missing queue'),
('[{"step_slug": "a", "queue_name": "f__a"}, {"queue_name": "f__b"}]', 'a missing step'),
('[{"step_slug": "a", "queue_name": "f__a"}, "f__b"]', 'something that is not a route'),
('[]', 'no route'),
('{}', 'an object'),
('null', 'the JSON value null'),
('"f__a"', 'a string');

select throws_ok(
  format(
    'select pgflow.ensure_flow_compiled(%L, pg_temp.shape(pg_temp.step(%L), pg_temp.step(%L)), false, %L, %L)',
    'f',
    'a',
    'B',
    'step',
    given.routes
  ),
  'PF007', 'The route map passed for flow "f" is not the one that PostgreSQL derives.', given.what || ' is refused'
)
from given;
select is_empty($$ select from pgflow.flows union all select from pgflow.queues $$, 'a new flow is not made then');

select results_eq(
  $outer$
    select detail
    from pg_temp.refusal(
      $$
        select pgflow.ensure_flow_compiled(
          'f', pg_temp.shape(pg_temp.step('a'), pg_temp.step('B')), false, 'step',
          '[{"step_slug": "a", "queue_name": "f__a"}, {"step_slug": "B", "queue_name": "f__1"}, 3]'
        )
      $$
    )
  $outer$,
  $$
    values (
      'Index 1: passed {"step_slug": "B", "queue_name": "f__1"}, derived {"step_slug": "B", "queue_name": "f__b"}. '
      'Index 2: passed 3, derived nothing.'
    )
  $$,
  'the detail lists both sides where they differ'
);
select is(
  pgflow.ensure_flow_compiled(
    'f', pg_temp.shape(pg_temp.step('a'), pg_temp.step('B')), false, 'step',
    '[{"queue_name": "f__a", "step_slug": "a"}, {"step_slug": "B", "queue_name": "f__b"}]'
  ) ->> 'status',
  'compiled', 'the derived map is accepted'
);
select is(
  pgflow.ensure_flow_compiled(
    'f', pg_temp.shape(pg_temp.step('a'), pg_temp.step('B')), false, 'step',
    pgflow.ensure_flow_compiled('f', pg_temp.shape(pg_temp.step('a'), pg_temp.step('B')), false, 'step') -> 'routes'
  ) ->> 'status',
  'verified', 'the map that a result holds is accepted'
);
select is(
  pgflow.ensure_flow_compiled(
    'f', pg_temp.shape(pg_temp.step('a'), pg_temp.step('B')), false, 'step', null
  ) ->> 'status',
  'verified', 'null derives the map'
);
select throws_ok(
  $$
    select pgflow.ensure_flow_compiled(
      'f', pg_temp.shape(pg_temp.step('a'), pg_temp.step('B')), false, 'step', '[]'
    )
  $$,
  'PF007', null, 'an existing flow is not verified with a wrong map'
);
select throws_ok(
  $$ select pgflow.ensure_flow_compiled('f', pg_temp.shape(pg_temp.step('a')), true, 'step', '[]') $$,
  'PF007', null, 'nor is it recompiled'
);
select is((select count(*) from pgflow.steps), 2::bigint, 'and it stays as it was');

-- Flow mode.

select is(
  pgflow.ensure_flow_compiled(
    'Plain', pg_temp.shape(pg_temp.step('a'), pg_temp.step('b')), false, 'flow',
    '[{"step_slug": "a", "queue_name": "plain"}, {"step_slug": "b", "queue_name": "plain"}]'
  ) ->> 'status',
  'compiled', 'in flow mode the map names the one queue for every step'
);
select throws_ok(
  $$
    select pgflow.ensure_flow_compiled(
      'Plain', pg_temp.shape(pg_temp.step('a'), pg_temp.step('b')), false, 'flow',
      '[{"step_slug": "a", "queue_name": "Plain"}, {"step_slug": "b", "queue_name": "Plain"}]'
    )
  $$,
  'PF007', null, 'a wrong map is refused in flow mode, too'
);
select is(
  pgflow.ensure_flow_compiled('bare', '{"steps": []}', false, 'flow', '[]') ->> 'status',
  'compiled', 'the map of a flow without steps is empty'
);

select * from finish();
rollback;
