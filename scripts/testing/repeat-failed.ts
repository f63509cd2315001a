import type { GroupResult } from './run-group.ts'
import type { Group } from './schedule.ts'

/** More files with failed tests than this are a fault and not the load of the machine: the most that load has made fail were 13. */
const MAX_FILES = 20

export type Repeated = { results: GroupResult[]; passedWhenRepeated: string[] }

/**
 * Repeats the files with failed tests once, with nothing beside them: a process that gets no CPU for seconds, because other tests use it,
 * may miss a deadline of the product. Tests that pass then count as passed, and are listed so that somebody makes them steadier.
 */
export async function repeatFailed(
  first: readonly GroupResult[],
  run: (group: Pick<Group, 'name' | 'files'>) => Promise<GroupResult>,
): Promise<Repeated> {
  const results = [...first]
  const passedWhenRepeated: string[] = []
  const files = first.flatMap(({ report }) => report.failedFiles)
  if (files.length > MAX_FILES) return { results, passedWhenRepeated }
  for (const [at, { report, ...result }] of first.entries()) {
    if (report.failedFiles.length === 0) continue
    const again = await run({ name: `${result.name}, repeated`, files: report.failedFiles })
    const { failed, failures } = again.report
    if (!again.isOk && failed === 0) continue
    passedWhenRepeated.push(...report.failures.filter((title) => !failures.includes(title)))
    const passed = report.passed + report.failed - failed
    results[at] = { ...result, isOk: again.isOk, report: { ...report, passed, failed, failures } }
  }
  return { results, passedWhenRepeated }
}
