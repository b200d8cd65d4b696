package store

import java.io.File

/** Keeps lines by their key. */
class Store(private val file: File) {
    private val lines = mutableMapOf<String, MutableList<Int>>()

    fun read() = file.useLines { all ->
        all.forEachIndexed { at, line ->
            val (key, _) = line.split('=', limit = 2).takeIf { it.size == 2 } ?: return@forEachIndexed
            lines.getOrPut(key.trim()) { mutableListOf() }.add(at)
        }
    }

    operator fun get(key: String): List<Int> = lines[key] ?: emptyList()

    override fun toString() = "${lines.size} keys: ${lines.entries.joinToString { (key, at) -> "$key=$at" }}"
}

val HELP = """
    usage: store FILE "key"
""".trimIndent()
