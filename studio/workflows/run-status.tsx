const tones: Record<string, string> = {
  success: 'is-open',
  failed: 'is-lost',
  tripwire: 'is-lost',
  parked: 'is-lost',
  suspended: 'is-asking',
}

/** The status of a run of a workflow, or of one of its steps. */
export function RunStatus({ status }: { status: string }) {
  return <span className={`chip ${tones[status] ?? ''}`}>{status}</span>
}
