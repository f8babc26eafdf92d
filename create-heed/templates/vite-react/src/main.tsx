import { StrictMode } from 'react'
import { createRoot } from 'react-dom/client'
import { Chat } from './chat.tsx'
import './style.css'

const root = document.querySelector('#root')
if (root) createRoot(root).render(<StrictMode><Chat /></StrictMode>)
