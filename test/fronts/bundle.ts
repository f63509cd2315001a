import { join } from 'node:path'
import { build } from 'vite'
import { ROOT } from '../deploy/files.ts'

/** Makes one script of a page's source and the packages that it imports, which are installed in a folder, as its user would. */
export async function bundle(source: string, root = ROOT): Promise<string> {
  const path = join(root, 'page.tsx')
  const page = {
    name: 'page',
    resolveId: (id: string) => (id === path ? path : undefined),
    load: (id: string) => (id === path ? source : undefined),
  }
  const built = await build({
    root,
    configFile: false,
    publicDir: false,
    logLevel: 'error',
    plugins: [page],
    oxc: { jsx: { runtime: 'automatic', importSource: 'react' } },
    build: {
      write: false,
      minify: false,
      reportCompressedSize: false,
      rolldownOptions: { input: path, output: { codeSplitting: false } },
    },
  })
  const [output] = [built].flat()
  if (!output || !('output' in output)) throw new Error('the page was not built')
  return output.output.flatMap((each) => (each.type === 'chunk' && each.isEntry ? [each.code] : [])).join('')
}
