import { execFileSync } from 'node:child_process'

const MAX_BYTES = 64 * 1024 * 1024

/** Runs git in a clone, and returns what it prints. Throws with its error. */
export const git = (root: string, ...args: string[]): string =>
  execFileSync('git', ['-C', root, ...args], {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'pipe'],
    maxBuffer: MAX_BYTES,
  })

/** The entry of the changelog for a version: the subjects of the commits since the last tag before HEAD, or of all commits without one, the newest first. */
export function changelogEntry(root: string, version: string): string {
  const tag = tagBefore(root)
  const subjects = git(root, 'log', '--no-merges', '--format=%s', tag === undefined ? 'HEAD' : `${tag}..HEAD`)
  const [date] = git(root, 'log', '-1', '--format=%cs').split('\n')
  const since = tag === undefined ? 'All commits:' : `Since ${tag}:`
  const lines = subjects.split('\n').filter(Boolean)
  return `## ${version} (${date})\n\n${since}\n\n${lines.map((subject) => `- ${subject}\n`).join('')}`
}

/** A tag of HEAD itself is that of this version. */
function tagBefore(root: string): string | undefined {
  try {
    return git(root, 'describe', '--tags', '--abbrev=0', 'HEAD^').trim()
  } catch {
    return undefined // There is no tag, or HEAD is the first commit.
  }
}
