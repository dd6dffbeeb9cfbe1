begin;
\ir helpers.psql
select plan(15);

-- The flow that is there, as a map from slugs to steps.

create temporary table persisted on commit drop as
select
  pg_temp.step('a') as a,
  pg_temp.step('b', 'a', pg_temp.only_if('{"x": 1}', 'fail')) as b,
  pg_temp.step('c', 'a,b', '{"whenExhausted": "skip"}') as c;

select from persisted, pg_temp.status('f', pg_temp.shape(a, b, c));

create function pg_temp.differences(shape jsonb, queue_mode text default 'flow')
returns setof text
language sql
as $$
  select jsonb_array_elements_text(
    pgflow.ensure_flow_compiled('f', differences.shape, false, differences.queue_mode) -> 'differences'
  )
$$;

select is_empty(
  $$ select pg_temp.differences(pg_temp.shape(a, b, c)) from persisted $$,
  'the same shape has no differences'
);

-- One key of one step.

select results_eq(
  format('select pg_temp.differences(pg_temp.shape(%s)) from persisted', change.steps),
  format('values (%L)', change.difference),
  change.what
)
from (
  values
  (
    'a || ''{"stepType": "map"}'', b, c',
    'Step at index 0, stepType: the database has "single", the shape has "map".',
    'a type'
  ),
  (
    'a, b, c || ''{"dependencies": ["b"]}''',
    'Step at index 2, dependencies: the database has ["a", "b"], the shape has ["b"].',
    'a dependency'
  ),
  (
    'a || ''{"whenUnmet": "skip-cascade"}'', b, c',
    'Step at index 0, whenUnmet: the database has "skip", the shape has "skip-cascade".',
    'whenUnmet'
  ),
  (
    'a, b, c - ''whenExhausted''',
    'Step at index 2, whenExhausted: the database has "skip", the shape has "fail".',
    'whenExhausted, where the shape has the default'
  ),
  (
    'a, b - ''requiredInputPattern'', c',
    'Step at index 1, requiredInputPattern: the database has {"x": 1}, the shape has "none".',
    'a pattern that is gone'
  ),
  (
    'a || pg_temp.unless(''{}''), b, c',
    'Step at index 0, forbiddenInputPattern: the database has "none", the shape has {}.',
    'a pattern that came, be it an empty one'
  )
) as change (steps, difference, what);

-- Steps.

select results_eq(
  $$
    select pg_temp.differences(pg_temp.shape(a, b || '{"slug": "B"}', c || '{"dependencies": ["a", "B"]}'))
    from persisted
  $$,
  $$
    values
    ('Step at index 1, slug: the database has "b", the shape has "B".'),
    ('Step at index 2, dependencies: the database has ["a", "b"], the shape has ["B", "a"].'),
    ('Route of step "B" at index 1: persisted none, derived "f".'),
    ('Route of step "b" at index 1: persisted "f", derived none.')
  $$,
  'a slug in another case is another step, and what depends on it differs, too'
);
select results_eq(
  $$ select pg_temp.differences(pg_temp.shape(a, b)) from persisted $$,
  $$
    values
    ('Step at index 2: the database has "c", the shape has no such step.'),
    ('Route of step "c" at index 2: persisted "f", derived none.')
  $$,
  'a step that is gone is one difference of the shape'
);
select results_eq(
  $$ select pg_temp.differences(pg_temp.shape(a, b, c, pg_temp.step('d'))) from persisted $$,
  $$
    values
    ('Step at index 3: the database has no such step, the shape has "d".'),
    ('Route of step "d" at index 3: persisted none, derived "f".')
  $$,
  'so is one that came'
);
select results_eq(
  $$ select split_part(pg_temp.differences(pg_temp.shape(b - 'dependencies', a)), ':', 1) from persisted limit 3 $$,
  $$
    values
    ('Step at index 0, slug'),
    ('Step at index 0, whenUnmet'),
    ('Step at index 0, requiredInputPattern')
  $$,
  'the order of steps is part of the shape; differences come in the order of steps and keys'
);
select is(
  pg_temp.status('f', '{"steps": []}'),
  'mismatch', 'a shape without steps differs from one with steps'
);

-- Mode and routes are told along, and raise nothing.

select results_eq(
  $$ select pg_temp.differences(pg_temp.shape(a), 'step') from persisted $$,
  $$
    values
    ('Step at index 1: the database has "b", the shape has no such step.'),
    ('Step at index 2: the database has "c", the shape has no such step.'),
    ('Queue mode: the database has "flow", the call has "step".'),
    ('Route of step "a" at index 0: persisted "f", derived "f__a".'),
    ('Route of step "b" at index 1: persisted "f", derived none.'),
    ('Route of step "c" at index 2: persisted "f", derived none.')
  $$,
  'when the shape differs, another mode and other routes are further differences'
);
select from pgmq.drop_queue('f');
select ok(
  'Queue "f" is not listed by PGMQ.' in (select pg_temp.differences(pg_temp.shape(pg_temp.step('a')))),
  'and so is a lost queue'
);
select is(
  pg_temp.status('f', pg_temp.shape(pg_temp.step('a'))),
  'mismatch', 'a differing shape is a mismatch, whatever else is wrong'
);

select * from finish();
rollback;
