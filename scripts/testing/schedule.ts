import { matchesGlob, posix } from 'node:path'

/** Test files that one mocha process runs. */
export type Group = { name: string; files: string[] }

/** Files that load the whole machine or measure it. They run when the others have ended. */
const HEAVY = 'test/{chaos/chaos,abuse/abuse,fuzz/fuzz,deploy/rolling}.test.ts'

/** The longest files and folders in the order in which they start: a long one that starts last delays the end of the run. */
const FIRST = [
  'test/scripts/**',
  'test/e2e/flows/**',
  'test/broker/processes.test.ts',
  'test/e2e/customers-outage.test.ts',
  'test/security/**',
  'test/e2e/{run,runs,sub-agents*,oidc}.test.ts',
  'test/e2e/*.test.ts',
  'test/broker/**',
  'test/e2e/plans/**',
  'test/store/mongo-*.test.ts',
  'test/gateway/**',
  'test/ops/**',
  'test/tools/**',
  'test/documents/**',
  'test/deploy/**',
  'test/auth/**',
  'test/chaos/**',
]

/** Divides test files into groups for processes of their own. */
export function schedule(files: readonly string[]): { light: Group[]; heavy: Group[] } {
  const groups = new Map<string, string[]>(FIRST.map((glob) => [glob, []]))
  const heavy: Group[] = []
  for (const file of files) {
    if (matchesGlob(file, HEAVY)) heavy.push({ name: file, files: [file] })
    else {
      const name = FIRST.find((glob) => matchesGlob(file, glob)) ?? folderOf(file)
      groups.set(name, [...(groups.get(name) ?? []), file])
    }
  }
  const light = [...groups].map(([name, inGroup]) => ({ name, files: inGroup }))
  return { light: light.filter((group) => group.files.length > 0), heavy }
}

/** The folder below test/, or test itself. */
const folderOf = (file: string) => posix.dirname(file).split('/').slice(0, 2).join('/')
