'use client'

import dynamic from 'next/dynamic'

// In the browser only: Node loads heed as it is, and with it a React that is not the one of Next.js.
const Chat = dynamic(async () => (await import('./chat.tsx')).Chat, { ssr: false })

export default function Page() {
  return <Chat />
}
