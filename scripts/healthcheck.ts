// The health check of a container: exits with 0 when this machine's ops listener answers that the process is ready, otherwise with 1.

const WITHIN_MS = 2_000

const url = `http://127.0.0.1:${process.env['OPS_PORT'] || 9090}/readyz`
const answer = await fetch(url, { signal: AbortSignal.timeout(WITHIN_MS) }).catch(() => undefined)
process.exit(answer?.ok ? 0 : 1)
