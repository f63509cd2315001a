import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmod, cp, readFile, symlink, utimes } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { COMPILE_CACHE } from '../../scripts/node-options.ts'
import { until } from '../support/until.ts'
import { makeTree } from './temp-tree.ts'

export const OURS = fileURLToPath(new URL('../..', import.meta.url))
const COPIED = [
  'scripts/ae',
  'scripts/pack-client',
  'scripts/pack-release',
  'scripts/start',
  'scripts/test',
  'scripts/ensure-node.sh',
  'scripts/ensure-console.sh',
  'scripts/cluster',
  'scripts/ensure-chromium.sh',
  'scripts/test-reporter.ts',
  'scripts/node-options.ts',
  'scripts/testing',
  'scripts/local-services/watchdog.ts',
  'scripts/imports',
  'test/hooks.ts',
  'services/wiring/quick-imports.ts',
]

/** Notes its calls in npm.log; `npm ci` brings what the real one would, as links. */
const NPM = `#!/bin/sh
echo "npm $*" >> npm.log
[ "$1" = ci ] && { [ -z "$SLOW_NPM" ] || { echo "pid $$"; exec sleep 60; }; mkdir -p node_modules/.bin
  ln -sfn "${process.execPath}" node_modules/.bin/node; for name in mocha typescript @typescript; do ln -sfn "${OURS}/node_modules/$name" "node_modules/$name"; done; }
[ "$1" = run ] && exit "\${CHECK_CODE:-0}"
exit 0
`

/** A small project with our scripts, a stand-in for npm, and this Node. */
export async function makeProject(files: Record<string, string> = {}, wantedNode = '>=24') {
  const tree = await makeTree({
    'package.json': JSON.stringify({ type: 'module', engines: { node: wantedNode } }),
    'package-lock.json': '{"lock":1}',
    '.mocharc.json': await readFile(join(OURS, '.mocharc.json'), 'utf8'),
    'bin/npm': NPM,
    'scripts/local-services.ts': '',
    'scripts/fill-compile-cache.ts': '',
    ...files,
  })
  await utimes(join(tree.root, 'package-lock.json'), 0, 0) // As a clone's is older than what is installed after it.
  for (const path of COPIED) await cp(join(OURS, path), join(tree.root, path), { recursive: true })
  await chmod(join(tree.root, 'bin/npm'), 0o755)
  await symlink(process.execPath, join(tree.root, 'bin/node'))
  const env = {
    NODE_COMPILE_CACHE: COMPILE_CACHE,
    PATH: `${tree.root}/bin:/usr/bin:/bin`,
    CHROMIUM: process.execPath,
    HOME: tree.root,
  }
  return {
    ...tree,
    start: (command: string, args: string[] = [], more: Record<string, string> = {}) =>
      new Running(spawn(join(tree.root, command), args, { cwd: dirname(tree.root), env: { ...env, ...more } })),
    npmCalls: async () =>
      (await readFile(join(tree.root, 'npm.log'), 'utf8').catch(() => '')).split('\n').filter((line) => line !== ''),
  }
}

export type Ended = { code: number | null; stdout: string; stderr: string }

/** A script on its way. */
class Running {
  readonly ended: Promise<Ended>
  readonly #child: ChildProcess
  readonly #text = { stdout: '', stderr: '' }

  constructor(child: ChildProcess) {
    this.#child = child
    child.stdout?.on('data', (chunk) => (this.#text.stdout += chunk))
    child.stderr?.on('data', (chunk) => (this.#text.stderr += chunk))
    this.ended = once(child, 'close').then(([code]) => ({ code, ...this.#text }))
  }

  /** Waits until the output, of either kind, has something that matches; gives the first group. */
  async says(pattern: RegExp): Promise<string> {
    for (;;) {
      const match = pattern.exec(`${this.#text.stdout}\n${this.#text.stderr}`)
      if (match) return match[1] ?? ''
      const more = [this.#child.stdout, this.#child.stderr].flatMap((stream) => (stream ? [once(stream, 'data')] : []))
      const end = this.ended.then(({ code, stderr }) => Promise.reject(new Error(`ended with ${code}: ${stderr}`)))
      await Promise.race([...more, end])
    }
  }

  kill(signal: NodeJS.Signals): void {
    this.#child.kill(signal)
  }
}

/** Waits for the end of a process that has been told to end; a zombie that nobody has reaped yet counts as gone. */
export function isGone(pid: string): Promise<boolean> {
  const hasEnded = async () => {
    const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '')
    return stat === '' || /\) Z /.test(stat)
  }
  return until(hasEnded, { what: `process ${pid} to end`, withinMs: 2_000 })
}
