create function pgflow.own_queues(
  flow_slug text,
  queue_mode text,
  step_slugs text[],
  highest_id bigint default 0
)
returns void
language plpgsql
set search_path to pg_catalog, pg_temp
as $function$
declare
  wanted_names constant text[] := array(
    select wanted.queue_name
    from pgflow.queues_to_own(own_queues.flow_slug, own_queues.queue_mode, own_queues.step_slugs) as wanted
    order by wanted.queue_name collate "C"
  );
  new_names text[];
  queue_to_make text;
  made_at timestamptz;
begin
  -- Nobody can make one of these queues between the check and us.
  perform pgflow.lock_queue_names(wanted_names);

  perform pgflow.check_queues(own_queues.flow_slug, own_queues.queue_mode, own_queues.step_slugs);

  begin
    with inserted as (
      insert into pgflow.queues (queue_name, flow_slug, step_slug, physical_created_at)
      select wanted.queue_name, own_queues.flow_slug, wanted.step_slug, transaction_timestamp()
      from pgflow.queues_to_own(own_queues.flow_slug, own_queues.queue_mode, own_queues.step_slugs) as wanted
      order by wanted.queue_name collate "C"
      on conflict do nothing
      returning queues.queue_name
    )
    select coalesce(array_agg(inserted.queue_name order by inserted.queue_name collate "C"), '{}')
    into new_names
    from inserted;

    -- A row that did not come has an owner who was not there yet when we checked.
    if exists (
      select
      from pgflow.queues as owner
      where owner.queue_name = any(wanted_names)
        and owner.flow_slug <> own_queues.flow_slug
    ) then
      raise unique_violation;
    end if;

    foreach queue_to_make in array new_names
    loop
      made_at := pgflow.make_queue(queue_to_make, own_queues.highest_id);

      update pgflow.queues as owner
      set physical_created_at = made_at
      where owner.queue_name = queue_to_make
        and owner.physical_created_at <> made_at;
    end loop;

    -- PGMQ's lock knows of no other spelling, and PGMQ would have left us with whatever was made under one.
    if exists (
      select
      from pgflow.physical_queues(new_names) as made
      where made.spellings <> array[made.queue_name]
    ) then
      raise unique_violation;
    end if;
  exception
    when unique_violation or duplicate_table then
      -- Somebody came in between. Now that our rows are gone again, what he has can be seen and named.
      perform pgflow.check_queues(own_queues.flow_slug, own_queues.queue_mode, own_queues.step_slugs);
      raise;
  end;
end
$function$;

comment on function pgflow.own_queues(text, text, text[], bigint) is
'Internal: takes the queues of a complete flow: checks them, writes their owner rows in name order and makes them, with message ids above highest_id. Raises what check_queues() raises, also for what came in between.';
