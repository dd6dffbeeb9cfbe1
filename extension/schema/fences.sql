create table pgflow.fences (
  flow_slug text not null,
  function_name text not null,
  was_enabled boolean not null,
  fenced_at timestamptz not null,
  reason text not null,
  restored_at timestamptz,
  primary key (flow_slug, function_name, fenced_at),
  constraint restored_at_is_after_fenced_at check (restored_at >= fenced_at)
);

create unique index fences_open on pgflow.fences (flow_slug, function_name) where restored_at is null;
create index fences_open_of_function on pgflow.fences (function_name) where restored_at is null;

select pg_catalog.pg_extension_config_dump('pgflow.fences', '');

comment on table pgflow.fences is
'One row for every time that a worker function was fenced with a flow; open until restored_at is set. No foreign keys: the way back must outlive a flow that is deleted behind its fence.';
comment on column pgflow.fences.was_enabled is 'What unfence_flow() restores: whether the function was enabled before the first fence that holds it.';
comment on column pgflow.fences.fenced_at is 'Also worker_functions.disabled_at of what the fence disabled, so that a later disable can be told from it.';
comment on column pgflow.fences.reason is 'What the workers and operators get to read.';
