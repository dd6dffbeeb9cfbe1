begin;
\ir helpers.psql

create temporary table bad (shape jsonb, message text) on commit drop;

-- The shape as a whole.
insert into bad values
(null, '"shape" must be an object, but is null'),
('null', '"shape" must be an object, but is null'),
('[]', '"shape" must be an object, but is []'),
('"steps"', '"shape" must be an object, but is "steps"'),
('{}', '"steps" must be an array, but is missing'),
('{"steps": null}', '"steps" must be an array, but is null'),
('{"steps": {"slug": "a"}}', '"steps" must be an array, but is {"slug": "a"}'),
('{"steps": [], "options": []}', '"options" must be an object, but is []'),
('{"steps": [], "options": {"timeout": 0}}', '"options.timeout" must be between 1 and 2147483647, but is 0'),
('{"steps": [], "options": {"maxAttempts": "3"}}', '"options.maxAttempts" must be a whole number, but is "3"'),
('{"steps": [], "options": {"baseDelay": null}}', '"options.baseDelay" must be a whole number, but is null');

-- A step; the first step of each shape is sound.
insert into bad
select
  jsonb_build_object('steps', jsonb_build_array('{"slug": "first"}'::jsonb, given.step)) as shape,
  given.place || given.flaw as message
from (
  values
  ('"second"'::jsonb, 'the step at index 1: ', '"steps" must hold objects, but holds "second"'),
  ('null', 'the step at index 1: ', '"steps" must hold objects, but holds null'),
  ('{}', 'the step at index 1: ', '"slug" must be a string, but is null'),
  ('{"slug": null}', 'the step at index 1: ', '"slug" must be a string, but is null'),
  ('{"slug": 7}', 'step "7" at index 1: ', '"slug" must be a string, but is 7'),
  ('{"slug": ["x"]}', 'step "["x"]" at index 1: ', '"slug" must be a string, but is ["x"]'),
  (
    '{"slug": "run"}', 'step "run" at index 1: ',
    '"slug" must be 1 to 128 letters, digits or underscores, not starting with a digit, and not "run"; it is "run"'
  ),
  (
    '{"slug": "s; drop table canary"}', 'step "s; drop table canary" at index 1: ',
    '"slug" must be 1 to 128 letters, digits or underscores, not starting with a digit, and not "run"; '
    'it is "s; drop table canary"'
  ),
  ('{"slug": "first"}', 'step "first" at index 1: ', '"slug" is that of an earlier step'),
  (
    '{"slug": "s", "stepType": "loop"}',
    'step "s" at index 1: ',
    '"stepType" must be one of single, map, but is "loop"'
  ),
  ('{"slug": "s", "stepType": null}', 'step "s" at index 1: ', '"stepType" must be a string, but is null'),
  (
    '{"slug": "s", "whenUnmet": "Skip"}',
    'step "s" at index 1: ',
    '"whenUnmet" must be one of fail, skip, skip-cascade, but is "Skip"'
  ),
  ('{"slug": "s", "whenExhausted": true}', 'step "s" at index 1: ', '"whenExhausted" must be a string, but is true'),
  (
    '{"slug": "s", "dependencies": "first"}',
    'step "s" at index 1: ',
    '"dependencies" must be an array, but is "first"'
  ),
  ('{"slug": "s", "dependencies": null}', 'step "s" at index 1: ', '"dependencies" must be an array, but is null'),
  ('{"slug": "s", "dependencies": [1]}', 'step "s" at index 1: ', '"dependencies" must hold slugs, but holds 1'),
  ('{"slug": "s", "dependencies": [null]}', 'step "s" at index 1: ', '"dependencies" must hold slugs, but holds null'),
  ('{"slug": "s", "dependencies": ["s"]}', 'step "s" at index 1: ', '"dependencies" names the step itself'),
  (
    '{"slug": "s", "dependencies": ["First"]}',
    'step "s" at index 1: ',
    '"dependencies" names "First", which is no step of the flow'
  ),
  ('{"slug": "s", "options": 3}', 'step "s" at index 1: ', '"options" must be an object, but is 3'),
  (
    '{"slug": "s", "options": {"maxAttempts": -1}}',
    'step "s" at index 1: ',
    '"options.maxAttempts" must be between 0 and 2147483647, but is -1'
  ),
  (
    '{"slug": "s", "options": {"baseDelay": 1.5}}',
    'step "s" at index 1: ',
    '"options.baseDelay" must be a whole number, but is 1.5'
  ),
  (
    '{"slug": "s", "options": {"timeout": 2147483648}}',
    'step "s" at index 1: ',
    '"options.timeout" must be between 1 and 2147483647, but is 2147483648'
  ),
  (
    '{"slug": "s", "options": {"timeout": true}}',
    'step "s" at index 1: ',
    '"options.timeout" must be a whole number, but is true'
  ),
  (
    '{"slug": "s", "options": {"startDelay": 1e300}}',
    'step "s" at index 1: ',
    '"options.startDelay" must be between 0 and 2147483647, but is 1' || repeat('0', 96) || '...'
  ),
  (
    '{"slug": "s", "requiredInputPattern": {"a": 1}}', 'step "s" at index 1: ',
    '"requiredInputPattern" must be {"defined": false} or {"defined": true, "value": {...}}, but is {"a": 1}'
  ),
  (
    '{"slug": "s", "requiredInputPattern": {"defined": "true", "value": {}}}', 'step "s" at index 1: ',
    '"requiredInputPattern" must be {"defined": false} or {"defined": true, "value": {...}}, '
    'but is {"value": {}, "defined": "true"}'
  ),
  (
    '{"slug": "s", "forbiddenInputPattern": {"defined": true}}', 'step "s" at index 1: ',
    '"forbiddenInputPattern" must be {"defined": false} or {"defined": true, "value": {...}}, but is {"defined": true}'
  ),
  (
    '{"slug": "s", "forbiddenInputPattern": {"defined": true, "value": [1]}}', 'step "s" at index 1: ',
    '"forbiddenInputPattern" must be {"defined": false} or {"defined": true, "value": {...}}, '
    'but is {"value": [1], "defined": true}'
  ),
  (
    '{"slug": "s", "forbiddenInputPattern": null}', 'step "s" at index 1: ',
    '"forbiddenInputPattern" must be {"defined": false} or {"defined": true, "value": {...}}, but is null'
  )
) as given (step, place, flaw);

-- Several steps.
insert into bad values
(
  '{"steps": [{"slug": "a", "dependencies": ["b"]}, {"slug": "b"}]}',
  'step "a" at index 0: "dependencies" names "b", which only comes later, at index 1; a cycle or a wrong order'
),
(
  '{"steps": [
    {"slug": "a", "dependencies": ["c"]}, {"slug": "b", "dependencies": ["a"]}, {"slug": "c", "dependencies": ["b"]}
  ]}',
  'step "a" at index 0: "dependencies" names "c", which only comes later, at index 2; a cycle or a wrong order'
),
(
  '{"steps": [{"slug": "a"}, {"slug": "b"}, {"slug": "m", "stepType": "map", "dependencies": ["a", "b"]}]}',
  'step "m" at index 2: "dependencies" holds 2 steps, but a map can have at most one dependency'
);

select plan(2 * (select count(*)::int from bad) + 19);

select throws_ok(
  format('select pgflow.ensure_flow_compiled(%L, %L, false, %L)', 'f', bad.shape, queue_mode),
  'PF008',
  format('The shape of flow "f" is not valid: %s.', bad.message),
  format('%s mode: %s', queue_mode, coalesce(left(bad.shape::text, 80), 'no shape'))
)
from bad
cross join unnest('{flow,step}'::text[]) as queue_mode;

select results_eq(
  $outer$
    select detail, hint
    from pg_temp.refusal(
      $$
        select pgflow.ensure_flow_compiled(
          'f', '{"steps": [{"slug": "a", "stepType": 1}, {"slug": "a"}], "options": {"timeout": "1"}}'
        )
      $$
    )
  $outer$,
  $$
    values (
      'It has 3 flaws: "options.timeout" must be a whole number, but is "1"; '
      'step "a" at index 0: "stepType" must be a string, but is 1; '
      'step "a" at index 1: "slug" is that of an earlier step.',
      'Correct the flow''s definition and compile it again. Nothing was changed.'
    )
  $$,
  'all flaws are told at once'
);
select throws_ok(
  format('select pgflow.ensure_flow_compiled(%L, %L)', slug, '{"steps": []}'),
  'PF008',
  format('Flow slug %s is not valid.', coalesce(to_json(slug)::text, 'null')),
  'bad flow slug: ' || coalesce(to_json(slug)::text, 'null')
)
from unnest(array[null, '', 'run', 'a b', e'a\n', 'a''; drop table pgflow.flows; --', repeat('x', 129)]) as slug;

-- Unknown keys.

select throws_ok(
  format('select pgflow.ensure_flow_compiled(%L, %L, false, %L)', 'f', shape, 'step'),
  'PF008',
  format('The shape of flow "f" is not valid: %s.', message),
  'in step mode an unknown key is refused: ' || message
)
from (
  values
  ('{"steps": [{"slug": "a"}], "version": 2}', '"version" is not known'),
  (
    '{"steps": [{"slug": "a"}], "options": {"startDelay": 1}}',
    '"options.startDelay" is not known; known are maxAttempts, baseDelay, timeout'
  ),
  ('{"steps": [{"slug": "a", "queue": "q"}]}', 'step "a" at index 0: "queue" is not known'),
  (
    '{"steps": [{"slug": "a", "options": {"retries": 1}}]}',
    'step "a" at index 0: "options.retries" is not known; known are maxAttempts, baseDelay, timeout, startDelay'
  ),
  (
    '{"steps": [{"slug": "a", "requiredInputPattern": {"defined": false, "value": {}}}]}',
    'step "a" at index 0: "requiredInputPattern.value" is not used when "defined" is false'
  )
) as unknown (shape, message);
select is(
  pg_temp.status('f', '{"steps": [{"slug": "a", "queue": "q", "options": {"retries": 1}}], "version": 2}'),
  'compiled', 'in flow mode unknown keys are ignored'
);
select is(
  pg_temp.status('f', '{"steps": [{"slug": "a", "color": "red"}]}'), 'verified', 'and are no part of the shape'
);

-- Arguments.

select throws_ok(
  format('select pgflow.ensure_flow_compiled(%L, %L, false, %L)', 'g', '{"steps": []}', queue_mode),
  'PF019', format('Queue mode %s is not known.', coalesce(to_json(queue_mode)::text, 'null')),
  'queue mode: ' || coalesce(to_json(queue_mode)::text, 'null')
)
from unnest(array[null, 'Step']) as queue_mode;
select is(
  pgflow.ensure_flow_compiled('f', '{"steps": [{"slug": "b"}]}', null) ->> 'status',
  'mismatch', 'allow_data_loss null allows nothing'
);
select results_eq($$ select flow_slug from pgflow.flows $$, $$ values ('f') $$, 'no refused flow is left behind');

select * from finish();
rollback;
