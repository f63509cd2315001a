import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { access, mkdir, writeFile } from 'node:fs/promises'
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

const GO = 'github.com/mark3labs/mcp-go/examples/everything@v1.2.1'

/** A server of fastmcp over stdio, or over streamable HTTP at a port, where it has a tool with the name given as well. */
const FASTMCP = `import asyncio
import sys
from fastmcp import Context, FastMCP
server = FastMCP("fast")
notes = []
@server.tool
def note(text: str, times: int = 1) -> list[str]:
    """Remembers a text."""
    notes.extend([text] * times)
    return notes
async def work(ctx: Context, seconds: int = 0) -> str:
    """Works for some seconds."""
    await ctx.report_progress(1, 2)
    await asyncio.sleep(seconds)
    return "worked"
if len(sys.argv) < 2:
    server.run()
else:
    server.tool(work, name=sys.argv[2])
    server.run(transport="http", port=int(sys.argv[1]))
`

/** The folders of programs of npm and of Python, the program of Go, and the script of fastmcp. */
export type Installed = { bin: string; python: string; go: string; script: string; versions: string }

/** Installs the servers into a folder, unless they are there. Wants npm, Python and Go. */
export async function install(folder: string, say: (line: string) => void): Promise<Installed> {
  const [bin, python, script] = [join(folder, 'node_modules/.bin'), join(folder, 'venv/bin'), join(folder, 'fast.py')]
  await mkdir(folder, { recursive: true })
  if (!(await isThere(join(folder, 'done')))) {
    say('installs the servers, which takes minutes')
    await shell(`npm install --no-audit --no-fund --silent --prefix . ${NPM.join(' ')}`, folder)
    await shell(`python3 -m venv venv && venv/bin/pip install --quiet ${PYPI.join(' ')}`, folder)
    await shell('git init -q repo && touch done', folder)
  }
  const go = join(folder, 'go/everything')
  if (!(await isThere(go))) await shell(`GOBIN=${join(folder, 'go')} go install ${GO}`, folder)
  await writeFile(script, FASTMCP)
  const pip = await shell(`venv/bin/pip freeze | grep -iE '^(${PYPI.join('|')})=='`, folder)
  return { bin, python, go, script, versions: [...NPM, ...pip.trim().split('\n'), GO].join(', ') }
}

const isThere = (path: string): Promise<boolean> =>
  access(path).then(
    () => true,
    () => false,
  )

async function shell(command: string, cwd: string): Promise<string> {
  const child = spawn('bash', ['-ec', command], { cwd, stdio: ['ignore', 'pipe', 'inherit'] })
  const [output, [code]] = await Promise.all([child.stdout.toArray(), once(child, 'exit')])
  if (code !== 0) throw new Error(`exit code ${code}: ${command}`)
  return Buffer.concat(output as Buffer[]).toString()
}
