import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { access, copyFile, mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { bundle } from './bundle.ts'
import type { Front } from './chat.ts'
import { openPage } from './guide-pages.ts'

/** What the pages import, in the versions in which they were tried. */
const PACKAGES = [
  ...['react@19.3.1', 'react-dom@19.3.1', 'zod@4.6.7'],
  ...['@assistant-ui/react@0.15.22', '@assistant-ui/react-ag-ui@0.0.57'],
  ...['@copilotkit/react-core@1.74.0', '@copilotkit/runtime@1.74.0'],
]

/** Pages that are not in the guide, whose packages are installed into a folder unless they are there. */
export async function installedFronts(folder: string): Promise<Front[]> {
  await install(folder)
  return [
    {
      title: 'assistant-ui over AG-UI',
      open: openPage(async ({ api }) =>
        bundle((await sourceOf('assistant-ui-over-ag-ui.jsx')).replaceAll('${API}', api), folder),
      ),
      lacks: {
        'a branch back and on': 'the package deletes the message that is edited',
        'a tool of the page': 'the page has none',
      },
      attach,
      reconnect,
    },
    {
      title: 'CopilotKit',
      open: openPage(async ({ product }) =>
        bundle(
          (await sourceOf('copilotkit.jsx')).replace('${RUNTIME}', await startRuntime(folder, product.url)),
          folder,
        ),
      ),
      lacks: {
        'a branch back and on': 'the package has none',
        'a stop with two runs': 'its runtime takes one run of a thread at a time',
        'type instead of answering':
          'its runtime shows its own record after a reload: what the denied run still says is not in it',
      },
      attach,
      reconnect,
    },
  ]
}

const sourceOf = (name: string): Promise<string> => readFile(new URL(`pages/${name}`, import.meta.url), 'utf8')

/** A page that shows nothing more by itself is reloaded. */
const reconnect: NonNullable<Front['reconnect']> = async ({ page }) => void (await page.reload())

/** Starts CopilotKit's runtime, which ends with this process. It needs no network when its telemetry is off. */
async function startRuntime(folder: string, api: string): Promise<string> {
  await copyFile(new URL('pages/copilotkit-runtime.mjs', import.meta.url), join(folder, 'runtime.mjs'))
  const env = { ...process.env, COPILOTKIT_TELEMETRY_DISABLED: 'true' }
  const runtime = spawn(process.execPath, ['runtime.mjs', `${api}/ag-ui`], { cwd: folder, env })
  process.once('exit', () => runtime.kill())
  const [line] = (await once(runtime.stdout.setEncoding('utf8'), 'data')) as [string]
  return line.trim()
}

const attach: NonNullable<Front['attach']> = ({ page }) => page.locator('[name=attached]').check()

async function install(folder: string): Promise<void> {
  const isThere = await access(join(folder, 'done')).then(
    () => true,
    () => false,
  )
  if (isThere) return
  await mkdir(folder, { recursive: true })
  await writeFile(join(folder, 'package.json'), '{"private":true,"type":"module"}')
  const flags = ['--no-audit', '--no-fund', '--ignore-scripts', '--omit=optional']
  const npm = spawn('npm', ['install', ...flags, ...PACKAGES], { cwd: folder, stdio: ['ignore', 'ignore', 'inherit'] })
  const [code] = await once(npm, 'exit')
  if (code !== 0) throw new Error(`npm install ended with ${code}`)
  await writeFile(join(folder, 'done'), '')
}
