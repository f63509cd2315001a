import type { KeptFiles } from '../../shared/work/runs/workspaces.ts'

/** The kept files of a process whose store has everything. */
export const ALL_KEPT: KeptFiles = {
  bring: async () => {},
  save: async () => {},
  unstored: async () => [],
  lacks: async () => [],
  close: async () => {},
}
