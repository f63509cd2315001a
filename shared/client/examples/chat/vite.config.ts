import { defineConfig, type ProxyOptions } from 'vite'

const { AE_URL = 'http://127.0.0.1:8080/v1', AE_TOKEN, PORT = '5173' } = process.env

/** The page reaches the engine through its own server, so it needs no token, and the engine needs no CORS. */
const engine: ProxyOptions = {
  target: AE_URL,
  changeOrigin: true,
  rewrite: (path) => path.replace('/engine', ''),
  headers: AE_TOKEN ? { authorization: `Bearer ${AE_TOKEN}` } : {},
  // The engine refuses requests from pages of other origins. This removes the header for this server's own page; other origins are still refused.
  configure: (proxy) =>
    proxy.on('proxyReq', (sent, { headers: { origin, host } }) => {
      if (origin === `http://${host}`) sent.removeHeader('origin')
    }),
}

export default defineConfig({ server: { host: '127.0.0.1', port: Number(PORT), proxy: { '/engine': engine } } })
