begin;
\ir helpers.psql
select plan(20);

create function pg_temp.plan_for(flow_slug text, shape jsonb, queue_mode text, allow_data_loss boolean default false)
returns jsonb
language sql
as $$
  select pgflow.plan_flow_compiled(
    plan_for.flow_slug, plan_for.shape, plan_for.allow_data_loss, plan_for.queue_mode
  )
$$;

select pg_temp.compile('Old', 'step', jsonb_build_array(pg_temp.step('a'), pg_temp.map('b', 'a')));
select pg_temp.start('Old', 'first');
select pg_temp.start('Old', 'second');
select pg_temp.work('Old', 'a', '[1, 2, 3]');
select pgmq.create('new__b');
create temporary table before on commit drop as
select pg_temp.footprint() as footprint;

select is(
  pg_temp.plan_for('New', pg_temp.shape(pg_temp.step('x'), pg_temp.step('y')), 'step'),
  '{
    "status": "compiled",
    "error": null,
    "differences": [],
    "routes": [{"step_slug": "x", "queue_name": "new__x"}, {"step_slug": "y", "queue_name": "new__y"}],
    "creates": ["new__x", "new__y"],
    "drops": [],
    "loses": {"runs": 0, "tasks": 0, "messages": 0},
    "collisions": []
  }',
  'a new flow would be compiled'
);
select is(
  pg_temp.plan_for('New', '{"steps": []}', 'flow') -> 'creates', '["new"]', 'and so would one without steps'
);
select is(
  pg_temp.plan_for('Old', pg_temp.shape(pg_temp.step('a'), pg_temp.map('b', 'a')), 'step') - 'routes',
  '{
    "status": "verified", "error": null, "differences": [], "creates": [], "drops": [],
    "loses": {"runs": 0, "tasks": 0, "messages": 0}, "collisions": []
  }',
  'an equal flow would be verified'
);
select is(
  pg_temp.plan_for('Old', pg_temp.shape(pg_temp.step('a')), 'step'),
  '{
    "status": "mismatch",
    "error": null,
    "differences": [
      "Step at index 1: the database has \"b\", the shape has no such step.",
      "Route of step \"b\" at index 1: persisted \"old__b\", derived none."
    ],
    "routes": [{"step_slug": "a", "queue_name": "old__a"}],
    "creates": [],
    "drops": [],
    "loses": {"runs": 0, "tasks": 0, "messages": 0},
    "collisions": []
  }',
  'of one that differs the differences would be told, and nothing lost'
);
select is(
  pg_temp.plan_for('Old', pg_temp.shape(pg_temp.step('a'), pg_temp.step('c')), 'step', true) - 'differences' - 'routes',
  '{
    "status": "recompiled",
    "error": null,
    "creates": ["old__a", "old__c"],
    "drops": ["old__a", "old__b"],
    "loses": {"runs": 2, "tasks": 5, "messages": 4},
    "collisions": []
  }',
  'where data may be lost it would be recompiled, and the plan tells what is lost'
);
select is(
  pg_temp.plan_for('Old', pg_temp.shape(pg_temp.step('a'), pg_temp.map('b', 'a')), 'flow', true) ->> 'status',
  'recompiled', 'so it would for another mode'
);

-- Refusals.

select is(
  pg_temp.plan_for('Old', pg_temp.shape(pg_temp.step('a'), pg_temp.map('b', 'a')), 'flow') #>> '{error,sqlstate}',
  'PF007', 'another mode would be refused'
);
select is(
  pg_temp.plan_for('Old', pg_temp.shape(pg_temp.step('a'), pg_temp.map('b', 'a')), 'flow') -> 'differences' -> 0,
  '"Queue mode: the database has \"step\", the call has \"flow\"."', 'and the differences tell why'
);
select is(
  pg_temp.plan_for('new', pg_temp.shape(pg_temp.step('a'), pg_temp.step('b')), 'step') - 'error',
  '{
    "status": "refused",
    "differences": [],
    "routes": [{"step_slug": "a", "queue_name": "new__a"}, {"step_slug": "b", "queue_name": "new__b"}],
    "creates": [],
    "drops": [],
    "loses": {"runs": 0, "tasks": 0, "messages": 0},
    "collisions": [{"queue_name": "new__b", "owner_flow": null, "owner_step": null}]
  }',
  'a queue that nobody owns would be a collision'
);
select is(
  pg_temp.plan_for('old__a', '{"steps": []}', 'flow') -> 'collisions',
  '[{"queue_name": "old__a", "owner_flow": "Old", "owner_step": "a"}]',
  'and so would one of another flow'
);
select is(
  pg_temp.plan_for(flow_slug, shape, queue_mode) ->> 'status' || ' '
  || (pg_temp.plan_for(flow_slug, shape, queue_mode) #>> '{error,sqlstate}'),
  'refused ' || sqlstate,
  'the plan tells what would be raised: ' || sqlstate
)
from (
  values
  ('PF001', repeat('f', 45), pg_temp.shape(pg_temp.step('a')), 'step'),
  ('PF003', 'f', pg_temp.shape(pg_temp.step('a'), pg_temp.step('A')), 'step'),
  ('PF006', 'f', '{"steps": []}', 'step'),
  ('PF008', 'f', '[]', 'flow'),
  ('PF015', repeat('f', 48), '{"steps": []}', 'flow'),
  ('PF019', 'f', '{"steps": []}', 'both')
) as refused (sqlstate, flow_slug, shape, queue_mode);
select is(
  pgflow.plan_flow_compiled('f', '{"steps": []}', false, 'flow', '{}') #>> '{error,detail}',
  'Passed was {}, not an array.', 'a wrong route map would be refused'
);
select results_eq(
  $$
    select error.*
    from pg_temp.plan_for('f', '{"steps": []}', 'step') as plan
    cross join jsonb_to_record(plan -> 'error') as error (sqlstate text, message text, detail text, hint text)
  $$,
  $$ select * from pg_temp.refusal('select pgflow.ensure_flow_compiled(''f'', ''{"steps": []}'', false, ''step'')') $$,
  'the error is the one that compiling raises, in all its parts'
);

-- A plan only looks.

select is(pg_temp.footprint(), (select footprint from before), 'no row was written or locked by any of this');
select is(
  pg_temp.status('Old', pg_temp.shape(pg_temp.step('a'), pg_temp.step('c')), 'step', true),
  'recompiled', 'compiling does what the plan said'
);

select * from finish();
rollback;
