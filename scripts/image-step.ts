import { resolve } from 'node:path'
import { stripVTControlCharacters } from 'node:util'

// Runs a script in the build of the image: node scripts/image-step.ts scripts/build-console.ts
// When it fails, mostly because the image lacks something, this prints the reasons without a stack trace.
const [script = ''] = process.argv.slice(2)

try {
  await import(resolve(script))
} catch (cause) {
  console.error(`${script} failed:\n${causesOf(cause).map(reasonOf).join('\n')}`)
  console.error('Does deploy/Dockerfile copy what is missing, and does deploy/Dockerfile.dockerignore let it through?')
  process.exit(1)
}

/** Vite puts the single errors into one. */
function causesOf(cause: unknown): unknown[] {
  return cause instanceof Error && 'errors' in cause && Array.isArray(cause.errors) ? cause.errors : [cause]
}

/** The lines of an error's message before a part of the source or a stack trace. */
function reasonOf(cause: unknown): string {
  const lines = stripVTControlCharacters(cause instanceof Error ? cause.message : String(cause)).split('\n')
  const end = lines.findIndex((line) => /^ *(╭|at |Stack backtrace)/.test(line))
  return lines
    .slice(0, end < 0 ? undefined : end)
    .filter(Boolean)
    .join('\n')
}
