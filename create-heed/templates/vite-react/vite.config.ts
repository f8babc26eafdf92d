import react from '@vitejs/plugin-react'
import { defineConfig } from 'vite'

// The page and the API have one address, so that the page needs no CORS.
const proxy = { '/api': `http://127.0.0.1:${process.env.PORT ?? 4111}` }

export default defineConfig({
  plugins: [react()],
  server: { host: '127.0.0.1', proxy },
  preview: { host: '127.0.0.1', proxy },
})
