import type { Objects } from '../../../../shared/platform/objects/port.ts'
import { Gate } from '../../../../shared/work/runs/kept/gate.ts'
import {
  type KeptWorkspaces,
  type KeptWorkspacesDeps,
  openKeptWorkspaces,
} from '../../../../shared/work/runs/kept/kept-workspaces.ts'
import { useFixture } from '../../../support/fixture.ts'
import { type TestS3, useS3 } from '../../../support/s3.ts'
import { SILENT_LOG } from '../../../support/silent-log.ts'
import { makeTempFolder } from '../../../support/temp-folder.ts'

export type Kept = KeptWorkspaces & { dir: string }

/** Opens processes that share no disk, over one store. What they ask of it is counted. */
export function useKept(s3: TestS3 = useS3()) {
  const opened = useFixture(async () => new AsyncDisposableStack(), { perTest: true })
  const asked: string[] = []
  const counted = (objects: Objects): Objects => ({
    ...objects,
    has: (key) => (asked.push(`has ${key}`), objects.has(key)),
    find: (key) => (asked.push(`find ${key}`), objects.find(key)),
    write: (key, content, when) => (asked.push(`write ${key}`), objects.write(key, content, when)),
    delete: (key) => (asked.push(`delete ${key}`), objects.delete(key)),
  })
  return {
    s3,
    /** The operations on objects since the last call, with the kinds of their keys. */
    took: () => asked.splice(0).map((each) => each.replace(/\/.*/s, '')),
    async open(changes: Partial<KeptWorkspacesDeps> = {}): Promise<Kept> {
      const { path: dir } = opened().use(await makeTempFolder())
      const limits = { maxBytes: 10_000_000, maxFiles: 100 }
      const objects = counted(s3.open({ waitMs: 300 }))
      const deps = { objects, limits, gate: new Gate(8), sweeps: { storedMs: 0 }, log: SILENT_LOG, ...changes }
      const kept = await openKeptWorkspaces(dir, deps)
      opened().defer(() => kept.kept.close())
      return Object.assign(kept, { dir })
    },
  }
}
