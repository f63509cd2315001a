import { matchesGlob, posix } from 'node:path'

/** Test files that one mocha process runs. */
export type Group = { name: string; files: string[] }

/** Files that load the whole machine or measure it. No other test runs at the same time. */
const ALONE = 'test/{chaos/chaos,abuse/abuse,fuzz/fuzz,deploy/rolling}.test.ts'

/** The longest files and folders in the order in which they start: a long one that starts last delays the end of the run. */
const FIRST = [
  'test/e2e/customers-outage.test.ts',
  'test/broker/processes.test.ts',
  'test/store/mongo-*.test.ts',
  'test/e2e/{run,runs,sub-agents*,oidc}.test.ts',
  'test/e2e/**',
  'test/broker/**',
  'test/security/**',
  'test/deploy/**',
  'test/documents/**',
  'test/gateway/**',
  'test/scripts/**',
  'test/auth/**',
  'test/tools/**',
  'test/chaos/**',
]

/** Divides test files into groups for processes of their own: those that run one at a time, and those that run side by side. */
export function schedule(files: readonly string[]): { alone: Group[]; together: Group[] } {
  const groups = new Map<string, string[]>(FIRST.map((glob) => [glob, []]))
  const alone: Group[] = []
  for (const file of files) {
    if (matchesGlob(file, ALONE)) alone.push({ name: file, files: [file] })
    else {
      const name = FIRST.find((glob) => matchesGlob(file, glob)) ?? folderOf(file)
      groups.set(name, [...(groups.get(name) ?? []), file])
    }
  }
  const together = [...groups].map(([name, inGroup]) => ({ name, files: inGroup }))
  return { alone, together: together.filter((group) => group.files.length > 0) }
}

/** The folder below test/, or test itself. */
const folderOf = (file: string) => posix.dirname(file).split('/').slice(0, 2).join('/')
