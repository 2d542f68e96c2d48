"""Local files that Spark writes, without a process and a second file for each.

Hadoop, through which Spark writes all files, has two habits that cost a micro-batch more than its
files: it writes a file of checksums beside each, and it sets the permissions of each by starting
``chmod``, since Java could not do so when that was written, and the library that Hadoop has for it
is not part of Spark. A micro-batch writes a dozen files, and to start a process costs a JVM several
milliseconds of CPU time.

So Hadoop is given a file system of its own kind that sets permissions as Java does. It is a few
lines of Java, compiled by Janino in the running JVM: that compiler is a part of Spark, which
compiles every query with it. Hadoop keeps one file system for all local files in its cache and asks
for the class only when it makes it, so it is made and kept there, by a configuration that nobody
else sees. If anything in this fails, Hadoop's own remains.
"""

from __future__ import annotations

import os
from typing import Any

from pyspark.sql import SparkSession

from penstock.spark.private_spark import JAVA_ERROR, hadoop_settings, java_of

_NAME = "penstock.LocalFiles"
_SOURCE = """
package penstock;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.attribute.PosixFilePermissions;
import org.apache.hadoop.fs.LocalFileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RawLocalFileSystem;
import org.apache.hadoop.fs.permission.FsPermission;

public class LocalFiles extends LocalFileSystem {
    public LocalFiles() {
        super(new Raw());
    }

    public static class Raw extends RawLocalFileSystem {
        public void setPermission(Path path, FsPermission permission) throws IOException {
            if (permission.getStickyBit()) {
                super.setPermission(path, permission);
                return;
            }
            String mode = permission.getUserAction().SYMBOL
                + permission.getGroupAction().SYMBOL
                + permission.getOtherAction().SYMBOL;
            Files.setPosixFilePermissions(
                pathToFile(path).toPath(), PosixFilePermissions.fromString(mode));
        }
    }
}
"""


def set_up_local_files(spark: SparkSession) -> None:
    """Let Hadoop write local files alone and without processes. Checksums it finds are checked."""
    java, configuration = java_of(spark), hadoop_settings(spark)
    kept = java.org.apache.hadoop.fs.FileSystem.getLocal(configuration)
    if os.name == "posix" and kept.getClass().getName() != _NAME:
        try:
            _replaced(java, configuration, kept)
        except JAVA_ERROR:
            return


def write_no_checksums(spark: SparkSession) -> None:
    """Let Hadoop write local files alone. Checksums it finds are checked."""
    java, configuration = java_of(spark), hadoop_settings(spark)
    java.org.apache.hadoop.fs.FileSystem.getLocal(configuration).setWriteChecksum(False)


def _replaced(java: Any, configuration: Any, kept: Any) -> Any:
    """The file system of ours, in Hadoop's cache in place of ``kept``."""
    compiler = java.org.codehaus.janino.SimpleCompiler()
    compiler.setParentClassLoader(configuration.getClassLoader())
    compiler.cook(_SOURCE)
    own = java.org.apache.hadoop.conf.Configuration(configuration)
    own.setClassLoader(compiler.getClassLoader())
    own.set("fs.file.impl", _NAME)
    kept.close()  # Which takes it out of the cache; it can be used as before.
    return java.org.apache.hadoop.fs.FileSystem.getLocal(own)
