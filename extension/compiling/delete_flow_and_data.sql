create function pgflow.delete_flow_and_data(p_flow_slug text)
returns void
language plpgsql
set search_path to pg_catalog, pg_temp
as $function$
begin
  perform pgflow.lock_slug(delete_flow_and_data.p_flow_slug);

  if not exists (select from pgflow.flows as flow where flow.flow_slug = delete_flow_and_data.p_flow_slug) then
    return;
  end if;

  perform pgflow.clear_flow(
    delete_flow_and_data.p_flow_slug,
    format('Flow "%s" was deleted.', delete_flow_and_data.p_flow_slug)
  );

  delete from pgflow.flows as flow
  where flow.flow_slug = delete_flow_and_data.p_flow_slug;
exception
  when out_of_memory then
    perform pgflow.refuse_full_lock_table(
      delete_flow_and_data.p_flow_slug,
      0,
      (select count(*) from pgflow.queues as owner where owner.flow_slug = delete_flow_and_data.p_flow_slug),
      sqlerrm
    );
end
$function$;

comment on function pgflow.delete_flow_and_data(text) is
'Deletes a flow with its runs, tasks and messages, drops the queues that it owns, and tells its workers to stop. An unknown slug, one in another case too, deletes nothing. Waits for work in progress on the flow. Raises PF017 when the lock table is full.';
