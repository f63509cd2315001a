import { matchesGlob } from 'node:path'
import { folderOf } from './report.ts'

/** Test files that one mocha process runs. `lanes`: it begins when fewer groups than these run. */
export type Group = { name: string; files: string[]; lanes: number }

/** More mocha processes than the two cores of the smallest machine, since most tests wait. The last ones start only while CPU is left (lanes.ts). */
const LANES = 6
/**
 * First the folders whose tests mostly wait, for leases and timeouts: beside them there is CPU for the others, while one that starts last keeps
 * the whole phase waiting. Then the longest. A process needs up to a second to load what it tests, so folders of short tests share one.
 */
const ORDER = [
  'test/e2e/flows/batch.test.ts',
  'test/cluster/**',
  'test/{client,conformance,fuzz,harness,http,kernel,standalone,support,wiring,worker}/**',
  'test/scripts/**',
  'test/console/**',
  'test/e2e/{durable*,kept*,process,run,runs,sub-agents*}.test.ts',
  'test/e2e/{*dialects,client*,docs,examples}.test.ts',
  'test/e2e/[a-o]*.test.ts',
  'test/e2e/*.test.ts',
  'test/{tenancy,work}/**',
  'test/e2e/{flows,plans}/**',
  'test/platform/store/**',
  'test/platform/**',
  'test/{executor,ops}/**',
  'test/agent/tools/**',
  'test/{agent,chaos}/**',
  'test/documents/**',
  'test/simulation/**',
  'test/deploy/**',
  'test/gateway/**',
]

/**
 * Besides the faults of `test/chaos` there is half a core left: more than these lanes leave it too little of the CPU for its deadlines. The fourth
 * begins only while CPU is left; without it two fifths of the CPU time are idle.
 */
const LAST_LANES = 4
/**
 * Files that load the whole machine or measure it. They begin after all others. The order decides which of them run side by side: test/chaos, whose
 * processes have the shortest deadlines, beside those that need little CPU, then the rolling restart beside test/security. The command line, one
 * short command after the other, uses the CPU that the faults leave; so do the documents, which begin before, since they take the longest.
 */
const LAST = [
  'test/chaos/chaos.test.ts',
  'test/cluster/redis-cluster*.test.ts',
  'test/abuse/abuse.test.ts',
  'test/cli/**',
  'test/security/**',
  'test/deploy/rolling.test.ts',
  'test/fuzz/fuzz.test.ts',
]

/** Divides test files into groups for processes of their own, in the order in which they start. */
export function schedule(files: readonly string[]): Group[] {
  const isLast = (file: string) => LAST.some((glob) => matchesGlob(file, glob))
  const first = files.filter((file) => !isLast(file))
  return [
    ...groupsOf(first, ORDER).map((group) => ({ ...group, lanes: LANES })),
    ...groupsOf(files.filter(isLast), LAST).map((group) => ({ ...group, lanes: LAST_LANES })),
  ]
}

/** A group for each of `globs`, in their order, and for each folder of the other files. */
function groupsOf(files: readonly string[], globs: readonly string[]): Omit<Group, 'lanes'>[] {
  const groups = new Map<string, string[]>(globs.map((glob) => [glob, []]))
  for (const file of files) {
    const name = globs.find((glob) => matchesGlob(file, glob)) ?? folderOf(file)
    groups.set(name, [...(groups.get(name) ?? []), file])
  }
  return [...groups].map(([name, inGroup]) => ({ name, files: inGroup })).filter((group) => group.files.length > 0)
}
