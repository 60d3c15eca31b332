// The names of the files that server/kv keeps in a store's directory.

#pragma once

#define KV_FILE_DATA "data.mdb"       // the rows
#define KV_FILE_LOCK "lock.mdb"       // LMDB's table of readers
#define KV_FILE_PAIR "lock.pair"      // says which data.mdb lock.mdb belongs to
#define KV_FILE_FLUSHED "flushed.mdb" // the last flush of data.mdb
#define KV_DIRECTORY_LOG "log"        // what came after it
#define KV_FILE_WALKED "walked.note"  // whether the pages of data.mdb must be walked
