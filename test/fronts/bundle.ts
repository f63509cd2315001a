import { join } from 'node:path'
import { build } from 'vite'
import { ROOT } from '../deploy/files.ts'

/** The file that a page would be in the folder of this repository, whose packages it uses. */
const PAGE = join(ROOT, 'page.tsx')

/** Makes one script of a page's source and the packages that it imports, as its user would. */
export async function bundle(source: string): Promise<string> {
  const page = {
    name: 'page',
    resolveId: (id: string) => (id === PAGE ? PAGE : undefined),
    load: (id: string) => (id === PAGE ? source : undefined),
  }
  const built = await build({
    root: ROOT,
    configFile: false,
    publicDir: false,
    logLevel: 'error',
    plugins: [page],
    oxc: { jsx: { runtime: 'automatic', importSource: 'react' } },
    build: { write: false, minify: false, reportCompressedSize: false, rolldownOptions: { input: PAGE } },
  })
  const [output] = [built].flat()
  if (!output || !('output' in output)) throw new Error('the page was not built')
  return output.output.flatMap((each) => (each.type === 'chunk' && each.isEntry ? [each.code] : [])).join('')
}
