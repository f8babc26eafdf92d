/** What a process of faults rounds notes besides. */
export type FaultNote =
  /** A call of the store was answered with an error; `lost`: after it was carried out. */
  | { note: 'storeFailed'; method: string; thread: string; lost: boolean; ids: string[] }
  /** A claim gave this process the lease; `again`: one that its own host had given up. */
  | { note: 'leaseTaken'; thread: string; epoch: number; takenOver: boolean; again: boolean }
  /** It is about to be stored that these calls begin. */
  | { note: 'callsStarting'; thread: string; calls: string[] }
  /** A tool holds the event loop for so long. */
  | { note: 'loopBlocked'; ms: number }
  /** What `/ready` answered to a request that was made at `began`. */
  | { note: 'readiness'; ready: boolean; began: number }
  /** While the end of a run was being stored it was aborted, with all that was pending; and what the abort answered. */
  | { note: 'endAbort'; thread: string; run: string; queued: string }
  | { note: 'endAbortAnswer'; thread: string; run: string; aborted: boolean }
