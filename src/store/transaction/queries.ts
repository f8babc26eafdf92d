import type { ThreadStore } from '../contract.ts'

export type RunFilter = Parameters<ThreadStore['listRuns']>[0]
