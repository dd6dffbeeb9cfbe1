create table pgflow.steps (
  flow_slug text not null references pgflow.flows (flow_slug),
  step_slug text not null,
  step_type text not null default 'single',
  step_index int not null default 0,
  deps_count int not null default 0,
  opt_max_attempts int,
  opt_base_delay int,
  opt_timeout int,
  opt_start_delay int,
  required_input_pattern jsonb,
  forbidden_input_pattern jsonb,
  when_unmet text not null default 'skip',
  when_exhausted text not null default 'fail',
  created_at timestamptz not null default now(),
  queue_name text not null references pgflow.queues (queue_name),
  primary key (flow_slug, step_slug),
  -- The index first: the other way round it would look as fit as the primary key for finding a step by its slug, and
  -- read all steps of the flow.
  constraint steps_flow_slug_step_index_key unique (step_index, flow_slug),
  constraint steps_step_slug_check check (pgflow.is_valid_slug(step_slug)),
  constraint step_type_is_known check (step_type in ('single', 'map')),
  constraint deps_count_is_nonnegative check (deps_count >= 0),
  constraint opt_max_attempts_is_nonnegative check (opt_max_attempts >= 0),
  constraint opt_base_delay_is_nonnegative check (opt_base_delay >= 0),
  constraint opt_timeout_is_positive check (opt_timeout > 0),
  constraint opt_start_delay_is_nonnegative check (opt_start_delay >= 0),
  constraint required_input_pattern_is_object check (jsonb_typeof(required_input_pattern) = 'object'),
  constraint forbidden_input_pattern_is_object check (jsonb_typeof(forbidden_input_pattern) = 'object'),
  constraint when_unmet_is_valid check (when_unmet in ('fail', 'skip', 'skip-cascade')),
  constraint when_exhausted_is_valid check (when_exhausted in ('fail', 'skip', 'skip-cascade'))
);

select pg_catalog.pg_extension_config_dump('pgflow.steps', '');

comment on table pgflow.steps is 'One row a step of a flow, with its route.';
comment on column pgflow.steps.step_index is 'Zero-based position in the flow.';
comment on column pgflow.steps.opt_max_attempts is 'Null: the flow''s.';
comment on column pgflow.steps.opt_base_delay is 'Seconds. Null: the flow''s.';
comment on column pgflow.steps.opt_timeout is 'Seconds. Null: the flow''s.';
comment on column pgflow.steps.opt_start_delay is 'Seconds between the moment a step becomes ready and the moment its tasks can be claimed. Null: 0.';
comment on column pgflow.steps.queue_name is 'The route: the queue that messages of this step are sent to.';
