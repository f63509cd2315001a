import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { access, mkdir } from 'node:fs/promises'
import { join } from 'node:path'

/** The servers that are tried, unmodified, in the versions in which they were tried. */
const NPM = [
  '@modelcontextprotocol/server-filesystem@2026.8.31',
  '@modelcontextprotocol/server-everything@2026.8.31',
  '@modelcontextprotocol/server-memory@2026.8.31',
  '@modelcontextprotocol/server-sequential-thinking@2026.8.31',
  '@playwright/mcp@0.0.83',
]
const PYPI = ['mcp-server-time', 'mcp-server-git', 'mcp-server-fetch', 'fastmcp']

/** A server of fastmcp over streamable HTTP, and one over stdio. */
const FASTMCP = `import sys
from fastmcp import FastMCP
server = FastMCP("fast")
notes = []
@server.tool
def note(text: str, times: int = 1) -> list[str]:
    """Remembers a text."""
    notes.extend([text] * times)
    return notes
server.run() if len(sys.argv) < 2 else server.run(transport="http", port=int(sys.argv[1]))
`

export type Installed = { bin: string; python: string; script: string; versions: string }

/** Installs the servers into a folder, unless they are there. Wants npm and Python. */
export async function install(folder: string, say: (line: string) => void): Promise<Installed> {
  const [bin, python, script] = [join(folder, 'node_modules/.bin'), join(folder, 'venv/bin'), join(folder, 'fast.py')]
  await mkdir(folder, { recursive: true })
  const isThere = await access(join(folder, 'done')).then(
    () => true,
    () => false,
  )
  if (!isThere) {
    say('installs the servers, which takes minutes')
    await shell(`npm install --no-audit --no-fund --silent --prefix . ${NPM.join(' ')}`, folder)
    await shell(`python3 -m venv venv && venv/bin/pip install --quiet ${PYPI.join(' ')}`, folder)
    await shell(`cat > fast.py <<'PY'\n${FASTMCP}PY\ngit init -q repo && touch done`, folder)
  }
  const pip = await shell(`venv/bin/pip freeze | grep -iE '^(${PYPI.join('|')})=='`, folder)
  return { bin, python, script, versions: [...NPM, ...pip.trim().split('\n')].join(', ') }
}

async function shell(command: string, cwd: string): Promise<string> {
  const child = spawn('bash', ['-ec', command], { cwd, stdio: ['ignore', 'pipe', 'inherit'] })
  const [output, [code]] = await Promise.all([child.stdout.toArray(), once(child, 'exit')])
  if (code !== 0) throw new Error(`exit code ${code}: ${command}`)
  return Buffer.concat(output as Buffer[]).toString()
}
